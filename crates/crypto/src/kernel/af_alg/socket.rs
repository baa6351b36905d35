//! The system calls themselves.

use super::{Begin, Calls, Refused};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{AlgSetAeadAuthSize, AlgSetKey, RcvBuf, RcvBufForce, SndBuf, SndBufForce};
use nix::sys::socket::{
    AddressFamily, AlgAddr, ControlMessage, MsgFlags, SockFlag, SockType, bind, sendmsg, setsockopt, socket,
};
use rustix::net::{SendFlags, SocketFlags, accept_with};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};

/// Longest names that an address holds (`struct sockaddr_alg`), each ended by a zero.
const LONGEST_NAME: usize = 63;
/// Bytes that a socket should hold: a block of 1 MiB as one message, counted in pages.
const ROOM: usize = 4 << 20;
/// Bytes for which any socket has room.
const ROOM_OF_ALL: usize = 64 << 10;

/// A bound socket, and the one accepted from it that does the ops.
pub(in crate::kernel) struct Socket {
    bound: OwnedFd,
    accepted: Option<OwnedFd>,
}

impl Socket {
    fn at_work(&self) -> Result<&OwnedFd, Errno> {
        self.accepted.as_ref().ok_or(Errno::EBADF)
    }
}

impl Calls for Socket {
    fn bound(kind: &str, name: &str) -> Result<Self, Refused> {
        let bound = socket(AddressFamily::Alg, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None);
        let bound = bound.map_err(Refused::Socket)?;
        if name.len() > LONGEST_NAME {
            return Err(Refused::Bind(Errno::ENOENT));
        }
        bind(bound.as_raw_fd(), &AlgAddr::new(kind, name)).map_err(Refused::Bind)?;
        Ok(Self { bound, accepted: None })
    }

    fn set_key(&mut self, key: &[u8]) -> Result<(), Errno> {
        setsockopt(&self.bound, AlgSetKey::<&[u8]>::default(), &key)
    }

    fn set_tag(&mut self, bytes: usize) -> Result<(), Errno> {
        setsockopt(&self.bound, AlgSetAeadAuthSize, &bytes)
    }

    fn accept(&mut self, message_bytes: usize) -> Result<(), Errno> {
        self.close();
        let accepted = accept_with(&self.bound, SocketFlags::CLOEXEC);
        let accepted = accepted.map_err(|errno| Errno::from_raw(errno.raw_os_error()))?;
        if message_bytes > ROOM_OF_ALL {
            // Only root may have more than the system's limit. With less, large messages are refused, and are told so.
            if setsockopt(&accepted, SndBufForce, &ROOM).is_err() {
                let _ = setsockopt(&accepted, SndBuf, &ROOM);
            }
            if setsockopt(&accepted, RcvBufForce, &ROOM).is_err() {
                let _ = setsockopt(&accepted, RcvBuf, &ROOM);
            }
        }
        self.accepted = Some(accepted);
        Ok(())
    }

    fn close(&mut self) {
        self.accepted = None;
    }

    #[inline]
    fn send(&mut self, begin: Option<Begin<'_>>, data: &[u8], more: bool) -> Result<usize, Errno> {
        let operation = begin.map_or(0, |begin| if begin.decrypt { ALG_OP_DECRYPT } else { ALG_OP_ENCRYPT });
        let aad = begin.and_then(|begin| begin.aad).unwrap_or(0);
        let messages = begin.map(|begin| {
            [
                ControlMessage::AlgSetOp(&operation),
                ControlMessage::AlgSetIv(begin.iv),
                ControlMessage::AlgSetAeadAssoclen(&aad),
            ]
        });
        let count = begin.map_or(0, |begin| if begin.aad.is_some() { 3 } else { 2 });
        let messages = messages.as_ref().map_or(&[][..], |messages| &messages[..count]);
        let flags = MsgFlags::MSG_DONTWAIT | if more { more_follows() } else { MsgFlags::empty() };
        sendmsg::<()>(self.at_work()?.as_raw_fd(), &[IoSlice::new(data)], messages, flags, None)
    }

    #[inline]
    fn receive(&mut self, to: &mut [u8]) -> Result<usize, Errno> {
        nix::unistd::read(self.at_work()?, to)
    }
}

/// `MSG_MORE`, which nix does not name.
fn more_follows() -> MsgFlags {
    MsgFlags::from_bits_retain(SendFlags::MORE.bits() as _)
}

/// `ALG_OP_DECRYPT` and `ALG_OP_ENCRYPT` of linux/if_alg.h.
const ALG_OP_DECRYPT: i32 = 0;
const ALG_OP_ENCRYPT: i32 = 1;
