//! A value that threads change and a test waits for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// No wait of these tests is longer, unless it says so.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Watched<T>(Arc<(Mutex<T>, Condvar)>);

impl<T> Watched<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new((Mutex::new(value), Condvar::new())))
    }

    /// Changes the value and wakes who waits for it.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.0.1.notify_all();
        result
    }

    pub fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock())
    }

    /// Waits until `look` finds something; panics with `what` after [`PATIENCE`].
    pub fn wait<R>(&self, what: impl FnOnce(&T) -> String, mut look: impl FnMut(&T) -> Option<R>) -> R {
        let deadline = Instant::now() + PATIENCE;
        let mut value = self.lock();
        loop {
            if let Some(found) = look(&value) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited {PATIENCE:?} for {}", what(&value));
            value = self.0.1.wait_timeout(value, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Polls `look` until it finds something; panics with `what` after [`PATIENCE`].
pub fn poll<R>(what: impl FnOnce() -> String, mut look: impl FnMut() -> Option<R>) -> R {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {}", what());
        std::thread::sleep(Duration::from_millis(3));
    }
}
