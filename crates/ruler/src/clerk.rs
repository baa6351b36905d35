//! A single clerk: a server whose capacity is known exactly.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::clock::hold;

/// Who serves one request at a time, in the order of arrival.
///
/// When each is served is computed, not waited for: it begins when it arrives or when its predecessor is served, whichever
/// is later. A thread that wakes up late answers late, and delays nobody behind it, so that the capacity does not depend
/// on the machine.
#[derive(Default)]
pub(crate) struct Clerk {
    free_at: Mutex<Option<Instant>>,
}

impl Clerk {
    /// Takes a request that arrives now, and tells when it will be served.
    pub(crate) fn take(&self, service: Duration) -> Instant {
        let mut free_at = hold(&self.free_at);
        // Read under the lock, so that the order of arrivals is the order of service.
        let now = Instant::now();
        let served = free_at.map_or(now, |free_at| free_at.max(now)) + service;
        *free_at = Some(served);
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_once_are_served_one_after_the_other() {
        let (clerk, service) = (Clerk::default(), Duration::from_secs(10));
        let first = clerk.take(service);
        assert_eq!(clerk.take(service), first + service);
        assert_eq!(clerk.take(service), first + 2 * service);
    }
}
