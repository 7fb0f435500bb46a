//! Clocks, randomness and the timer.

use std::time::Duration;

use super::{Status, host, note};
use crate::harness::vm;

const MONOTONIC: u32 = 1;

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_current_time_nanoseconds(time: *mut u64) -> Status {
    note("proxy_get_current_time_nanoseconds");
    host(|vm| {
        // Envoy's wall clock is good to the microsecond.
        unsafe { *time = vm.process.clock.wall() / 1000 * 1000 };
        Status::Ok
    })
}

/// WASI: the monotonic clock is the one the filter asks for; another id is `EINVAL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_time_get(id: u32, _precision: u64, time: *mut u64) -> u16 {
    note("clock_time_get");
    const EINVAL: u16 = 28;
    let known =
        id == MONOTONIC && vm::try_with(|vm| unsafe { *time = vm.process.clock.monotonic() }).is_some();
    if known { 0 } else { EINVAL }
}

/// WASI: seeded, so that a test's run can be told again.
#[unsafe(no_mangle)]
unsafe extern "C" fn random_get(data: *mut u8, size: usize) -> u16 {
    note("random_get");
    const EIO: u16 = 29;
    let filled = vm::try_with(|vm| {
        for at in 0..size {
            vm.random =
                vm.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            unsafe { *data.add(at) = (vm.random >> 56) as u8 };
        }
    });
    if filled.is_some() { 0 } else { EIO }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_tick_period_milliseconds(period: u32) -> Status {
    note("proxy_set_tick_period_milliseconds");
    host(|vm| {
        let (now, root) = (vm.process.clock.elapsed(), vm.root_of(vm.context()));
        match vm.roots.get_mut(&root) {
            Some(root) => root.tick_every(Duration::from_millis(period.into()), now),
            None => return Status::BadArgument,
        }
        Status::Ok
    })
}
