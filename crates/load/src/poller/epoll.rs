//! The Linux poller.

use super::{BATCH, Event, Interest};
use duel_model::{Nanos, SECOND_NS};
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;

/// Watches descriptors for readiness. A descriptor that is closed is forgotten.
pub struct Poller {
    epoll: OwnedFd,
    raw: Vec<epoll::Event>,
    events: Vec<Event>,
}

impl Poller {
    /// A poller that watches nothing yet.
    pub fn new() -> io::Result<Self> {
        // The kernel adds 50 µs to a thread's timeouts unless asked not to; ops would start late by that much.
        // Where it refuses, the schedule lag in the audit shows it.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            raw: Vec::with_capacity(BATCH),
            events: Vec::with_capacity(BATCH),
        })
    }

    /// Starts watching a descriptor; events on it carry `token`.
    pub fn add(&self, fd: impl AsFd, token: usize, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token as u64), flags(interest))?)
    }

    /// Changes what a descriptor is watched for.
    pub fn modify(&self, fd: impl AsFd, token: usize, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token as u64), flags(interest))?)
    }

    /// Waits until something is ready or `timeout_ns` is over (`None`: without end), and tells what is ready.
    pub fn wait(&mut self, timeout_ns: Option<Nanos>) -> io::Result<&[Event]> {
        let timeout =
            timeout_ns.map(|ns| Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 });
        self.raw.clear();
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.raw), timeout.as_ref()) {
            // A signal: the caller looks at its flags and waits again.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.events.extend(self.raw.iter().map(|event| {
            let flags = event.flags;
            let broken = EventFlags::ERR | EventFlags::HUP;
            Event {
                token: event.data.u64() as usize,
                readable: flags.intersects(EventFlags::IN | EventFlags::RDHUP | broken),
                writable: flags.intersects(EventFlags::OUT | broken),
            }
        }));
        Ok(&self.events)
    }

    /// The `index`-th of the events that the last wait has told of.
    #[inline]
    pub fn event(&self, index: usize) -> Event {
        self.events[index]
    }
}

fn flags(interest: Interest) -> EventFlags {
    match interest {
        Interest::Read => EventFlags::IN,
        Interest::ReadWrite => EventFlags::IN | EventFlags::OUT,
    }
}
