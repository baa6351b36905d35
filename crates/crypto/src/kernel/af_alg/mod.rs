//! Linux: AF_ALG sockets. A socket is bound to an algorithm and gets the key; what is accepted from it does the ops: data goes
//! in by `sendmsg`, with `MSG_MORE` where more follows, and what is made of it comes out by `read`.

mod socket;

use super::Interface;
use super::algorithm::Algorithm;
use super::engine::TAG;
use super::table::Table;
use nix::errno::Errno;
pub(super) use socket::Socket;

/// Bytes of a part of a stream that is handed over at once: a socket takes some 200 KiB before it has to be read.
const PART: usize = 64 << 10;

/// What begins a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin<'a> {
    pub(super) decrypt: bool,
    pub(super) iv: &'a [u8],
    /// Bytes of additional data, for an AEAD.
    pub(super) aad: Option<u32>,
}

/// The system calls, so that tests can stand in for a kernel.
pub(super) trait Calls: Sized {
    /// A socket bound to an algorithm.
    fn bound(kind: &str, name: &str) -> Result<Self, Refused>;
    fn set_key(&mut self, key: &[u8]) -> Result<(), Errno>;
    fn set_tag(&mut self, bytes: usize) -> Result<(), Errno>;
    /// Closes what does the ops, and opens it anew; it should have room for messages of so many bytes.
    fn accept(&mut self, message_bytes: usize) -> Result<(), Errno>;
    /// A key cannot be set while it is open.
    fn close(&mut self);
    /// Hands data over without waiting; how much of it was taken.
    fn send(&mut self, begin: Option<Begin<'_>>, data: &[u8], more: bool) -> Result<usize, Errno>;
    fn receive(&mut self, to: &mut [u8]) -> Result<usize, Errno>;
}

/// Which step was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Socket(Errno),
    Bind(Errno),
}

/// An algorithm of the kernel.
pub(super) struct AfAlg<C> {
    calls: C,
    algorithm: Algorithm,
    /// What it was bound to.
    driver: Option<String>,
    /// Bytes of the largest message.
    message_bytes: usize,
}

impl<C: Calls> AfAlg<C> {
    pub(super) fn open(algorithm: Algorithm, wanted: Option<&str>, message_bytes: usize) -> Result<Self, String> {
        let name = wanted.map(|wanted| Table::read().bound_name(&algorithm, wanted));
        let bound = C::bound(algorithm.kind, name.as_deref().unwrap_or(algorithm.name));
        // Modules are loaded by now, so that the table is whole.
        let table = Table::read();
        let calls = bound.map_err(|why| refused(why, &algorithm, wanted, &table))?;
        let doers = table.that_do(&algorithm);
        let driver = match &name {
            None => doers.first().map(|entry| entry.driver.clone()),
            // A table that cannot be read tells nothing against it; the known answers do.
            Some(name) if doers.is_empty() || doers.iter().any(|entry| entry.driver == *name) => Some(name.clone()),
            Some(name) => return Err(format!("the kernel's {name} does no {}{}", algorithm.name, has(&doers))),
        };
        let mut opened = Self { calls, algorithm, driver, message_bytes };
        if algorithm.key_bytes == 0 {
            opened.calls.accept(message_bytes).map_err(|errno| failed("accept", errno))?;
        }
        Ok(opened)
    }

    /// Hands over a message of which nothing comes out before its end.
    fn send_whole(&mut self, begin: Option<Begin<'_>>, message: &[u8], chunk: usize) -> Result<(), String> {
        let (mut sent, mut begin) = (0, begin);
        while sent < message.len() {
            let part = chunk.max(1).min(message.len() - sent);
            let is_last = sent + part == message.len();
            match self.calls.send(begin, &message[sent..sent + part], !is_last) {
                Ok(taken) if taken == part => (sent, begin) = (sent + part, None),
                Err(Errno::EINTR) => {}
                Ok(_) | Err(Errno::EAGAIN | Errno::ENOMEM | Errno::ENOBUFS | Errno::EMSGSIZE) => {
                    return Err(too_large(message.len()));
                }
                Err(errno) => return Err(failed("sendmsg", errno)),
            }
        }
        Ok(())
    }

    fn receive(&mut self, to: &mut [u8]) -> Result<(), String> {
        let mut got = 0;
        while got < to.len() {
            match self.calls.receive(&mut to[got..]) {
                Ok(0) => return Err(format!("the kernel gave {got} bytes instead of {}", to.len())),
                Ok(count) => got += count,
                Err(Errno::EINTR) => {}
                Err(Errno::ENOMEM) => return Err(too_large(to.len())),
                Err(errno) => return Err(failed("read", errno)),
            }
        }
        Ok(())
    }
}

impl<C: Calls> Interface for AfAlg<C> {
    fn key(&mut self, key: &[u8]) -> Result<(), String> {
        self.calls.close();
        self.calls.set_key(key).map_err(|errno| failed("setting a key", errno))?;
        if self.algorithm.kind == "aead" {
            self.calls.set_tag(TAG).map_err(|errno| failed("setting the tag's length", errno))?;
        }
        self.calls.accept(self.message_bytes).map_err(|errno| failed("accept", errno))
    }

    fn cipher(
        &mut self,
        decrypt: bool,
        iv: Option<&[u8]>,
        from: &[u8],
        to: &mut [u8],
        chunk: usize,
    ) -> Result<(), String> {
        let mut begin = iv.map(|iv| Begin { decrypt, iv, aad: None });
        // A tweak holds for one text, which cannot be handed over in parts.
        let most = if self.algorithm.name.starts_with("xts") { usize::MAX } else { chunk.clamp(1, PART) };
        for (from, to) in from.chunks(most).zip(to.chunks_mut(most)) {
            self.send_whole(begin.take(), from, usize::MAX)?;
            self.receive(to)?;
        }
        Ok(())
    }

    fn aead(
        &mut self,
        decrypt: bool,
        iv: &[u8],
        aad: usize,
        from: &[u8],
        to: &mut [u8],
        chunk: usize,
    ) -> Result<(), String> {
        let begin = Begin { decrypt, iv, aad: Some(aad as u32) };
        self.send_whole(Some(begin), from, chunk)?;
        // Nothing comes out before the tag is made, or was found to be right, and then all at once.
        match self.calls.receive(to) {
            Ok(count) if count == to.len() => Ok(()),
            Ok(count) => Err(format!("the kernel gave {count} bytes instead of {}", to.len())),
            Err(Errno::EBADMSG) => Err("the kernel found a wrong tag".to_owned()),
            Err(Errno::ENOMEM) => Err(too_large(from.len())),
            Err(errno) => Err(failed("read", errno)),
        }
    }

    fn digest(&mut self, message: &[u8], to: &mut [u8], chunk: usize) -> Result<(), String> {
        self.send_whole(None, message, chunk)?;
        self.receive(to)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let table = Table::read();
        let doers = table.that_do(&self.algorithm);
        let entry = doers.iter().find(|entry| Some(&entry.driver) == self.driver.as_ref());
        let mut facts = vec![("version", format!("Linux {release}")), ("library", "the kernel, by AF_ALG".to_owned())];
        facts.extend(self.driver.clone().map(|driver| ("driver", driver)));
        facts.extend(entry.map(|entry| ("module", entry.module.clone())));
        facts.extend(entry.map(|entry| ("priority", entry.priority.to_string())));
        facts
    }
}

fn too_large(bytes: usize) -> String {
    format!(
        "the kernel takes no message of {bytes} bytes at once: its sockets hold less (net.core.wmem_max, net.core.optmem_max)"
    )
}

fn failed(step: &str, errno: Errno) -> String {
    format!("the kernel refuses it: {step}: {}", errno.desc())
}

/// Why there is no such socket, for the user.
fn refused(why: Refused, algorithm: &Algorithm, wanted: Option<&str>, table: &Table) -> String {
    match (why, wanted) {
        (Refused::Socket(Errno::EAFNOSUPPORT), _) => "not available here: this kernel has no AF_ALG sockets \
             (CONFIG_CRYPTO_USER_API; the modules af_alg, algif_skcipher, algif_aead and algif_hash)"
            .to_owned(),
        (Refused::Socket(Errno::EPERM | Errno::EACCES), _) => {
            "not permitted here: AF_ALG sockets are refused, as filters of containers do it".to_owned()
        }
        (Refused::Socket(errno), _) => format!("not available here: an AF_ALG socket: {}", errno.desc()),
        (Refused::Bind(Errno::ENOENT), None) => format!(
            "this kernel has no {}, or no module algif_{} by which programs reach it",
            algorithm.name, algorithm.kind
        ),
        (Refused::Bind(Errno::ENOENT), Some(wanted)) => {
            format!("this kernel has no {wanted} that does {}{}", algorithm.name, has(&table.that_do(algorithm)))
        }
        (Refused::Bind(Errno::ELIBBAD), _) => {
            format!("this kernel's {} has failed its own test", wanted.unwrap_or(algorithm.name))
        }
        (Refused::Bind(errno), _) => {
            format!("the kernel refuses {}: {}", wanted.unwrap_or(algorithm.name), errno.desc())
        }
    }
}

fn has(doers: &[&super::table::Entry]) -> String {
    let names: Vec<&str> = doers.iter().map(|entry| &*entry.driver).collect();
    if names.is_empty() { String::new() } else { format!("; it has {}", names.join(", ")) }
}

#[cfg(test)]
mod tests;
