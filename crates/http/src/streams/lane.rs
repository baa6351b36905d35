//! A lane: an op under way, and where it is.

use super::super::op::Op;
use super::super::shared::{Requests, Shared};
use crate::requests::cookies::Jar;
use crate::requests::picker::{Draft, Picker};
use crate::requests::request::Request;
use duel_model::Nanos;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) place: Place,
    pub(super) op: Op,
    pub(super) start_ns: Nanos,
    /// How often the op's stream was refused, and how often it had to look for another connection.
    pub(super) refusals: u32,
    pub(super) moves: u32,
    /// Its connection had answered a request before it got this one.
    pub(super) is_on_kept: bool,
    /// Its stream was not the first of its connection, and its request is the op's first: it was counted as reuse.
    pub(super) is_reuse: bool,
    /// What is sent instead of the target's request, where a redirect led here.
    pub(super) detour: Option<Arc<Request>>,
    /// What was chosen, where there is more than one request.
    pub(super) draft: Draft,
    pub(super) to_head_request: bool,
    /// Where the body begins behind the head of what is sent.
    pub(super) body_at: usize,
    /// Status and, where it was kept, the head of the last response.
    pub(super) status: u16,
    pub(super) head: Vec<u8>,
}

/// Where a lane's op is. This is what counts: who is not where a queue has it is passed over there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Idle,
    /// Needs a connection.
    Homeless,
    /// Is left alone until then, because the server has refused it.
    Paused(Nanos),
    /// Waits until this connection is open, or has room for one more stream.
    Waiting(usize),
    /// Has a stream of this connection.
    Open(usize),
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            place: Place::Idle,
            op: Op::NONE,
            start_ns: 0,
            refusals: 0,
            moves: 0,
            is_on_kept: false,
            is_reuse: false,
            detour: None,
            draft: Draft::default(),
            to_head_request: false,
            body_at: 0,
            status: 0,
            head: Vec::new(),
        }
    }

    /// Chooses what the op sends; where a redirect led here, that is known, and it takes the cookies along.
    #[inline]
    pub(super) fn choose(&mut self, picker: Option<&mut Picker>, shared: &Shared, jar: Option<&Jar>) {
        match (&mut self.detour, &shared.requests, picker) {
            (Some(detour), ..) => {
                self.to_head_request = detour.is_head;
                if let Some(jar) = jar {
                    jar.go_along(detour);
                }
            }
            (None, Requests::One(request), _) => self.to_head_request = request.is_head,
            (None, Requests::Many(repertoire), Some(picker)) => {
                self.to_head_request = picker.pick(repertoire, &mut self.draft, jar);
            }
            (None, Requests::Many(_), None) => {}
        }
    }

    /// The request's body.
    pub(super) fn body<'a>(&'a self, shared: &'a Shared) -> &'a [u8] {
        shared.outgoing(self.detour.as_deref(), &self.draft).from(self.body_at)
    }
}
