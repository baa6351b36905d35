//! The poller of the BSDs and macOS.

use super::{BATCH, Event, Interest};
use duel_model::{Nanos, SECOND_NS};
use rustix::event::Timespec;
use rustix::event::kqueue::{self, EventFilter, EventFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::io;

/// Watches descriptors for readiness. A descriptor that is closed is forgotten.
pub struct Poller {
    kqueue: OwnedFd,
    raw: Vec<kqueue::Event>,
    events: Vec<Event>,
}

impl Poller {
    /// A poller that watches nothing yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self { kqueue: kqueue::kqueue()?, raw: Vec::with_capacity(BATCH), events: Vec::with_capacity(BATCH) })
    }

    /// Starts watching a descriptor; events on it carry `token`.
    pub fn add(&self, fd: impl AsFd, token: usize, interest: Interest) -> io::Result<()> {
        let fd = fd.as_fd().as_raw_fd();
        self.change(EventFilter::Read(fd), EventFlags::ADD, token)?;
        if interest == Interest::ReadWrite { self.watch_writing(fd, token, true) } else { Ok(()) }
    }

    /// Changes what a descriptor is watched for.
    pub fn modify(&self, fd: impl AsFd, token: usize, interest: Interest) -> io::Result<()> {
        self.watch_writing(fd.as_fd().as_raw_fd(), token, interest == Interest::ReadWrite)
    }

    /// Waits until something is ready or `timeout_ns` is over (`None`: without end), and tells what is ready.
    pub fn wait(&mut self, timeout_ns: Option<Nanos>) -> io::Result<&[Event]> {
        let timeout = timeout_ns.map(|ns| Timespec { tv_sec: (ns / SECOND_NS) as _, tv_nsec: (ns % SECOND_NS) as _ });
        self.raw.clear();
        self.events.clear();
        match kevent(&self.kqueue, &[], &mut self.raw, timeout.as_ref()) {
            // A signal: the caller looks at its flags and waits again.
            Ok(()) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.events.extend(self.raw.iter().map(|event| {
            let writable = matches!(event.filter(), EventFilter::Write(_));
            Event { token: event.udata() as usize, readable: !writable, writable }
        }));
        Ok(&self.events)
    }

    /// The `index`-th of the events that the last wait has told of.
    pub fn event(&self, index: usize) -> Event {
        self.events[index]
    }

    fn watch_writing(&self, fd: RawFd, token: usize, on: bool) -> io::Result<()> {
        let flags = if on { EventFlags::ADD } else { EventFlags::DELETE };
        match self.change(EventFilter::Write(fd), flags, token) {
            // Deleting a filter that is not there is what was wanted.
            Err(error) if !on && error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(()),
            result => result,
        }
    }

    fn change(&self, filter: EventFilter, flags: EventFlags, token: usize) -> io::Result<()> {
        let change = kqueue::Event::new(filter, flags, token as *mut _);
        Ok(kevent(&self.kqueue, &[change], &mut Vec::new(), None)?)
    }
}

#[expect(unsafe_code, reason = "rustix marks kevent unsafe for the descriptors in the change list")]
fn kevent(
    kqueue: &OwnedFd,
    changes: &[kqueue::Event],
    events: &mut Vec<kqueue::Event>,
    timeout: Option<&Timespec>,
) -> Result<(), Errno> {
    // SAFETY: the change list names descriptors borrowed by the caller for this call; the kernel forgets a descriptor
    // when it is closed, so none outlives its registration.
    unsafe { kqueue::kevent_timespec(kqueue, changes, rustix::buffer::spare_capacity(events), timeout) }.map(|_| ())
}
