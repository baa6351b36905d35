//! Ops of the kernel's own crypto, as programs reach it: AF_ALG sockets on Linux, /dev/crypto on FreeBSD.
//!
//! Each call is one or two system calls, which is what this kind of target is about: the cipher is often the same, and what
//! differs is the way to it.

#[cfg(target_os = "linux")]
mod af_alg;
mod algorithm;
#[cfg(target_os = "freebsd")]
mod dev_crypto;
mod engine;
#[cfg(target_os = "linux")]
mod table;

pub(crate) use algorithm::fits;
pub(crate) use engine::Engine;

use crate::engine::Task;
use algorithm::Algorithm;

/// What a kernel does for a program, one algorithm at a time.
pub(crate) trait Interface {
    /// Sets the key of all that follows.
    fn key(&mut self, key: &[u8]) -> Result<(), String>;

    /// Works on a text in calls of `chunk` bytes; without an `iv` it goes on where the last text has ended.
    fn cipher(
        &mut self,
        decrypt: bool,
        iv: Option<&[u8]>,
        from: &[u8],
        to: &mut [u8],
        chunk: usize,
    ) -> Result<(), String>;

    /// Seals additional data (`aad` bytes) and text into additional data, text and tag, or opens what is sealed.
    fn aead(
        &mut self,
        decrypt: bool,
        iv: &[u8],
        aad: usize,
        from: &[u8],
        to: &mut [u8],
        chunk: usize,
    ) -> Result<(), String>;

    /// The digest of a message that is handed over in calls of `chunk` bytes.
    fn digest(&mut self, message: &[u8], to: &mut [u8], chunk: usize) -> Result<(), String>;

    /// Names and texts of what it is.
    fn facts(&self) -> Vec<(&'static str, String)>;
}

/// The interface of this system, ready for a task; `driver`: a certain implementation.
///
/// # Errors
///
/// Why there is none: a sentence.
pub(crate) fn opened(task: Task, driver: Option<&str>) -> Result<Engine, String> {
    let algorithm = Algorithm::of(task.op).ok_or_else(|| format!("the kernel does no {}", task.op.name))?;
    #[cfg(target_os = "linux")]
    let interface: Result<Box<dyn Interface>, String> =
        af_alg::AfAlg::<af_alg::Socket>::open(algorithm, driver, task.block).map(|opened| Box::new(opened) as _);
    #[cfg(target_os = "freebsd")]
    let interface: Result<Box<dyn Interface>, String> =
        dev_crypto::DevCrypto::open(algorithm, driver, task.block).map(|opened| Box::new(opened) as _);
    #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
    let interface: Result<Box<dyn Interface>, String> = {
        let _ = driver;
        Err("not available here: only Linux and FreeBSD give their crypto to programs".to_owned())
    };
    Engine::new(interface?, algorithm, task)
}
