//! Ops that a kernel does, whatever its interface is.

use super::Interface;
use super::algorithm::Algorithm;
use crate::engine::{Renews, Task};
use crate::ops::Class;

/// Bytes of the tags of GCM and Poly1305.
pub(super) const TAG: usize = 16;

/// What does the ops.
pub(crate) struct Engine {
    interface: Box<dyn Interface>,
    algorithm: Algorithm,
    task: Task,
    key: Vec<u8>,
    iv: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Whether the stream has begun.
    is_begun: bool,
}

impl Engine {
    /// Ready to work.
    ///
    /// # Errors
    ///
    /// The kernel refuses the op: a sentence.
    pub(super) fn new(interface: Box<dyn Interface>, algorithm: Algorithm, task: Task) -> Result<Self, String> {
        // The two halves of an XTS key must differ.
        let key: Vec<u8> = (0..algorithm.key_bytes).map(|place| place as u8 ^ 0x5a).collect();
        let mut engine = Self {
            interface,
            algorithm,
            task,
            key,
            iv: vec![0x0f; algorithm.iv_bytes],
            input: vec![0xa5; task.block],
            output: vec![0x5a; task.block + TAG],
            is_begun: false,
        };
        if !engine.key.is_empty() {
            engine.interface.key(&engine.key)?;
        }
        if task.op.class == Class::Aead && task.decrypt {
            // What is opened has to have the tag of this key and nonce.
            let mut sealed = vec![0; task.block + TAG];
            engine.interface.aead(false, &engine.iv, 0, &engine.input, &mut sealed, usize::MAX)?;
            engine.input = sealed;
            engine.output.truncate(task.block);
        }
        engine.op()?;
        Ok(engine)
    }

    /// One op.
    #[inline]
    pub(crate) fn op(&mut self) -> Result<(), String> {
        let Task { op, block, chunk, decrypt, renews } = self.task;
        if renews == Renews::Key && !self.key.is_empty() {
            self.interface.key(&self.key)?;
        }
        match op.class {
            Class::Cipher { .. } => {
                let goes_on = renews == Renews::Nothing && self.is_begun;
                if !goes_on && self.is_begun {
                    self.next_iv();
                }
                self.is_begun = true;
                let iv = (!goes_on).then_some(self.iv.as_slice());
                self.interface.cipher(decrypt, iv, &self.input, &mut self.output[..block], chunk)
            }
            Class::Aead => {
                if !decrypt {
                    // A nonce must not come twice. What is opened has its own.
                    self.next_iv();
                }
                self.interface.aead(decrypt, &self.iv, 0, &self.input, &mut self.output, chunk)
            }
            _ => self.interface.digest(&self.input, &mut self.output[..self.algorithm.digest_bytes], chunk),
        }
    }

    /// One op on this input, and what it gives, as `engine::Engine::answer`.
    pub(crate) fn answer(&mut self, key: &[u8], iv: &[u8], aad: &[u8], input: &[u8]) -> Result<Vec<u8>, String> {
        let Task { op, decrypt, chunk, .. } = self.task;
        // Our own key comes back afterwards, and a stream begins anew.
        self.is_begun = false;
        if !key.is_empty() {
            self.interface.key(key)?;
        }
        let made = match op.class {
            Class::Cipher { .. } => {
                let chunk = if self.algorithm.name.starts_with("xts") { input.len() } else { chunk };
                let mut made = vec![0; input.len()];
                self.interface.cipher(decrypt, Some(iv), input, &mut made, chunk)?;
                made
            }
            Class::Aead => {
                let from = [aad, input].concat();
                let length = if decrypt { from.len().saturating_sub(TAG) } else { from.len() + TAG };
                let mut made = vec![0; length];
                self.interface.aead(decrypt, iv, aad.len(), &from, &mut made, chunk)?;
                made.split_off(aad.len().min(length))
            }
            _ => {
                let mut made = vec![0; self.algorithm.digest_bytes];
                self.interface.digest(input, &mut made, chunk)?;
                made
            }
        };
        if !key.is_empty() {
            self.interface.key(&self.key)?;
        }
        Ok(made)
    }

    /// Names and texts of what it is.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        self.interface.facts()
    }

    fn next_iv(&mut self) {
        for byte in &mut self.iv {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
}
