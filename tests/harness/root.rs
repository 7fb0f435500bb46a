//! Root contexts: configured, ticking, retired.

use std::time::Duration;

use super::guest;
use super::vm::{Vm, call, with};

/// One plugin configuration living in a VM.
#[derive(Debug, Default)]
pub struct Root {
    policy: String,
    timer: Option<Timer>,
}

/// Envoy's timer: armed anew when `on_tick` has returned.
#[derive(Clone, Copy, Debug)]
struct Timer {
    /// In nanoseconds.
    period: u64,
    /// In nanoseconds since the process started.
    due: u64,
}

impl Root {
    /// Sets the period and arms the timer; zero stops it.
    pub fn tick_every(&mut self, period: Duration, now: u64) {
        let period = u64::try_from(period.as_nanos()).expect("an ABI period of 32 bits in milliseconds");
        self.timer = (period > 0).then(|| Timer { period, due: now + period });
    }
}

/// A root under `policy`, which new streams of this VM then belong to; `None` where the filter refuses it. One that is
/// still at work under the same text is used again, and is not told.
pub fn configure(policy: &str) -> Option<u32> {
    let again = |vm: &Vm| vm.roots.iter().find(|(_, root)| root.policy == policy).map(|(id, _)| *id);
    if let Some(root) = with(|vm| again(vm)) {
        with(|vm| vm.root = root);
        return Some(root);
    }
    let root = with(|vm| {
        let root = vm.next_context();
        vm.roots.insert(root, Root { policy: policy.to_owned(), ..Root::default() });
        root
    });
    call(root, || guest::proxy_on_context_create(root, 0));
    let started = call(root, || guest::proxy_on_vm_start(root, 0)).value;
    with(|vm| vm.configuration = Some(policy.as_bytes().to_vec()));
    let configured = started && call(root, || guest::proxy_on_configure(root, policy.len())).value;
    with(|vm| vm.configuration = None);
    if configured {
        with(|vm| vm.root = root);
    }
    configured.then_some(root)
}

/// When the next timer of this VM is due, in nanoseconds since the process started.
pub fn next_tick() -> Option<u64> {
    with(|vm| vm.roots.values().filter_map(|root| root.timer).map(|timer| timer.due).min())
}

/// Fires every timer that is due.
pub fn tick() {
    let due: Vec<u32> = with(|vm| {
        let now = vm.process.clock.elapsed();
        let due = |root: &Root| root.timer.is_some_and(|timer| timer.due <= now);
        vm.roots.iter().filter(|(_, root)| due(root)).map(|(id, _)| *id).collect()
    });
    for root in due {
        call(root, || guest::proxy_on_tick(root));
        with(|vm| {
            let now = vm.process.clock.elapsed();
            let timer = vm.roots.get_mut(&root).and_then(|root| root.timer.as_mut());
            if let Some(timer) = timer {
                timer.due = now + timer.period;
            }
        });
    }
}

/// Retires a root as Envoy does once its listener has drained: its streams are gone by then.
pub fn retire(root: u32) {
    if call(root, || guest::proxy_on_done(root)).value {
        call(root, || guest::proxy_on_delete(root));
        with(|vm| vm.roots.remove(&root));
    }
}
