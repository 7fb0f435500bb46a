//! Metrics, by ids that are a VM's own.

use super::{Status, host, note, text};
use crate::harness::metrics::{Kind, Metric};
use crate::harness::vm::Vm;

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_define_metric(kind: u32, name: *const u8, size: usize, id: *mut u32) -> Status {
    note("proxy_define_metric");
    let name = unsafe { text(name, size) };
    let kind = match kind {
        0 => Kind::Counter,
        1 => Kind::Gauge,
        2 => Kind::Histogram,
        _ => return Status::BadArgument,
    };
    host(|vm| {
        let metric = Metric { kind, name };
        vm.process.metrics().define(&metric);
        vm.metrics.push(metric);
        match u32::try_from(vm.metrics.len()) {
            Ok(defined) => unsafe { *id = defined },
            Err(_) => return Status::InternalFailure,
        }
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_metric(id: u32, value: *mut u64) -> Status {
    note("proxy_get_metric");
    with_metric(id, |vm, metric| match vm.process.metrics().value(&metric.name) {
        Some(found) => {
            unsafe { *value = found };
            Status::Ok
        }
        None => Status::BadArgument,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_record_metric(id: u32, value: u64) -> Status {
    note("proxy_record_metric");
    with_metric(id, |vm, metric| {
        vm.process.metrics().record(metric, value);
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_increment_metric(id: u32, offset: i64) -> Status {
    note("proxy_increment_metric");
    with_metric(id, |vm, metric| vm.process.metrics().increment(metric, offset))
}

fn with_metric(id: u32, work: impl FnOnce(&Vm, &Metric) -> Status) -> Status {
    host(|vm| {
        let place = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        match place.and_then(|place| vm.metrics.get(place)) {
            Some(metric) => work(vm, metric),
            None => Status::NotFound,
        }
    })
}
