//! Origins that redirects have led to: looked up once for all workers, and beside their event loops.
//!
//! The system's look-up of a name has no limit of time that we could set, and may take many seconds. A worker that waited in
//! it would hold up all its lanes, and answers that came meanwhile would be stamped late. So each name gets a thread that
//! waits, and the lanes whose redirects lead there hear of the answer as of any other event.

use crate::HttpFactory;
use duel_load::WorkloadError;
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most origins that are looked up for a target, those among them that lead nowhere: four times as many as a worker keeps
/// connections to. A server that makes up a new name for each redirect would else fill the memory with answers, and the
/// system with threads that wait for its resolver.
const MOST_LOOKED_UP: usize = 64;

/// What is known of the origins.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    known: Mutex<BTreeMap<String, Origin>>,
}

#[derive(Debug)]
enum Origin {
    /// Who wants to hear of it.
    UnderWay(Vec<Bell>),
    /// An error stands, or each op would wait for it.
    Known(Result<HttpFactory, WorkloadError>),
}

/// Wakes up a worker.
#[derive(Debug, Clone)]
pub(crate) struct Bell(Arc<UnixStream>);

/// Where a worker hears it.
#[derive(Debug)]
pub(crate) struct Ear(UnixStream);

impl Origins {
    /// What makes connections to an origin; `None`: it is being looked up, by `look_up` if nobody else does, and the bell
    /// rings when it is there.
    pub(crate) fn find(
        self: &Arc<Self>,
        origin: &str,
        bell: &Bell,
        look_up: impl FnOnce() -> Result<HttpFactory, WorkloadError> + Send + 'static,
    ) -> Result<Option<HttpFactory>, WorkloadError> {
        let mut known = self.lock();
        match known.get_mut(origin) {
            Some(Origin::Known(made)) => return made.clone().map(Some),
            Some(Origin::UnderWay(bells)) => {
                if !bells.iter().any(|known| Arc::ptr_eq(&known.0, &bell.0)) {
                    bells.push(bell.clone());
                }
                return Ok(None);
            }
            None => {}
        }
        if known.len() >= MOST_LOOKED_UP {
            return Err(WorkloadError(format!(
                "redirects have led to {MOST_LOOKED_UP} other hosts already, and no more are looked up; --follow-each 0 \
                 measures the redirects themselves"
            )));
        }
        let (this, name) = (Arc::clone(self), origin.to_owned());
        let thread = std::thread::Builder::new().name("duel-lookup".to_owned());
        // It is not waited for: it may be stuck in the resolver when all else is over.
        thread
            .spawn(move || this.answer(name, look_up()))
            .map_err(|error| WorkloadError(format!("cannot start a thread to look it up: {error}")))?;
        known.insert(origin.to_owned(), Origin::UnderWay(vec![bell.clone()]));
        Ok(None)
    }

    /// How many of them can be connected to, as far as is known.
    pub(crate) fn reachable(&self) -> usize {
        self.lock().values().filter(|origin| matches!(origin, Origin::Known(Ok(_)))).count()
    }

    fn answer(&self, origin: String, made: Result<HttpFactory, WorkloadError>) {
        if let Some(Origin::UnderWay(bells)) = self.lock().insert(origin, Origin::Known(made)) {
            bells.iter().for_each(Bell::ring);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Origin>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    /// A bell, and where it is heard.
    pub(crate) fn new() -> std::io::Result<(Self, Ear)> {
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        Ok((Self(Arc::new(bell)), Ear(ear)))
    }

    fn ring(&self) {
        // Where there is no room it has rung before and was not heard yet; where nobody is left, nobody waits.
        let _ = (&*self.0).write(&[0]);
    }
}

impl Ear {
    /// It has been heard.
    pub(crate) fn hear(&mut self) {
        let mut rings = [0; 256];
        while self.0.read(&mut rings).is_ok_and(|count| count == rings.len()) {}
    }
}

impl AsFd for Ear {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Waits until the bell has rung.
    fn await_ring(ear: &mut Ear) {
        ear.0.set_nonblocking(false).unwrap();
        ear.0.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert!(ear.0.read(&mut [0]).unwrap() > 0);
        ear.0.set_nonblocking(true).unwrap();
        ear.hear();
    }

    fn nobody() -> Result<HttpFactory, WorkloadError> {
        Err(WorkloadError("no such host".to_owned()))
    }

    #[test]
    fn nobody_waits_for_a_name_that_takes_long_and_it_is_looked_up_once() {
        let (origins, (release, released)) = (Arc::new(Origins::default()), channel::<()>());
        let ((one, mut one_ear), (two, mut two_ear)) = (Bell::new().unwrap(), Bell::new().unwrap());
        let slow = move || {
            // Ends when the test lets it, or is over.
            let _ = released.recv();
            nobody()
        };
        assert!(origins.find("http://slow", &one, slow).unwrap().is_none());
        for bell in [&one, &two, &two] {
            let again = || panic!("it is being looked up already");
            assert!(origins.find("http://slow", bell, again).unwrap().is_none());
        }
        // Another name does not wait for it.
        assert!(origins.find("http://quick", &two, nobody).unwrap().is_none());
        await_ring(&mut two_ear);
        assert!(origins.find("http://quick", &two, || panic!("an error stands")).is_err());
        drop(release);
        await_ring(&mut one_ear);
        await_ring(&mut two_ear);
        for bell in [&one, &two] {
            let error = origins.find("http://slow", bell, || panic!("an error stands")).unwrap_err();
            assert_eq!(error.0, "no such host");
        }
    }

    #[test]
    fn no_more_than_so_many_names_are_looked_up() {
        let (origins, (bell, _ear)) = (Arc::new(Origins::default()), Bell::new().unwrap());
        for number in 0..MOST_LOOKED_UP {
            assert!(origins.find(&format!("http://{number}"), &bell, nobody).unwrap().is_none());
        }
        for number in MOST_LOOKED_UP..MOST_LOOKED_UP + 1000 {
            let error = origins.find(&format!("http://{number}"), &bell, || panic!("one too many")).unwrap_err();
            assert!(error.0.contains("64 other hosts already"), "{error}");
        }
        assert_eq!(origins.lock().len(), MOST_LOOKED_UP);
    }
}
