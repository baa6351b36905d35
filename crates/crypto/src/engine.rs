//! Ops of a libcrypto by its EVP functions. Nothing of the library's memory is given back: the process is a child that works
//! and exits.
#![expect(unsafe_code, reason = "foreign functions are called through pointers")]

use crate::known;
use crate::library::{Library, Opaque};
use crate::ops::{Class, Op};
use std::ffi::{c_int, c_long, c_uchar, c_uint};
use std::ptr::{null, null_mut};

/// What is worked on by each op.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) op: &'static Op,
    pub(crate) block: usize,
    /// Bytes of a call, at least 1.
    pub(crate) chunk: usize,
    pub(crate) decrypt: bool,
    pub(crate) renews: Renews,
}

/// What each op of a cipher sets up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renews {
    Nothing,
    Nonce,
    Key,
}

/// `EVP_CTRL_GCM_GET_TAG` and `EVP_CTRL_GCM_SET_TAG`, which `EVP_CTRL_AEAD_*` are as well.
const CTRL_GET_TAG: c_int = 0x10;
const CTRL_SET_TAG: c_int = 0x11;
/// Bytes of the tags of GCM and Poly1305.
const TAG: usize = 16;
/// Bytes that a cipher may write beyond its input: one block of padding.
const PADDING: usize = 32;
/// With one nonce GCM may process 2^36 - 32 bytes (NIST SP 800-38D); libraries refuse more. The stream begins anew long before.
const STREAM_BYTES: u64 = 1 << 34;

type CipherInit = unsafe extern "C" fn(Opaque, Opaque, Opaque, *const c_uchar, *const c_uchar, c_int) -> c_int;
type CipherUpdate = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut c_int, *const c_uchar, c_int) -> c_int;
type CipherFinal = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut c_int) -> c_int;
type CipherControl = unsafe extern "C" fn(Opaque, c_int, c_int, Opaque) -> c_int;
type SetPadding = unsafe extern "C" fn(Opaque, c_int) -> c_int;
type DigestInit = unsafe extern "C" fn(Opaque, Opaque, Opaque) -> c_int;
type DigestUpdate = unsafe extern "C" fn(Opaque, *const c_uchar, usize) -> c_int;
type DigestFinal = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut c_uint) -> c_int;
type KeyStep = unsafe extern "C" fn(Opaque) -> c_int;
type Sign = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut usize, *const c_uchar, usize) -> c_int;
type Verify = unsafe extern "C" fn(Opaque, *const c_uchar, usize, *const c_uchar, usize) -> c_int;
type Derive = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut usize) -> c_int;
type RandomBytes = unsafe extern "C" fn(*mut c_uchar, c_int) -> c_int;

/// What does the ops.
pub(crate) struct Engine<'l> {
    library: &'l Library,
    task: Task,
    doer: Doer,
    input: Vec<u8>,
    output: Vec<u8>,
}

enum Doer {
    Cipher(Cipher),
    Digest {
        context: Opaque,
        kind: Opaque,
        init: DigestInit,
        update: DigestUpdate,
        finish: DigestFinal,
    },
    /// `tbs`: what is signed; `signature`: what is verified.
    Sign {
        context: Opaque,
        sign: Sign,
        tbs: Vec<u8>,
    },
    Verify {
        context: Opaque,
        verify: Verify,
        tbs: Vec<u8>,
        signature: Vec<u8>,
    },
    Derive {
        context: Opaque,
        derive: Derive,
    },
    Random(RandomBytes),
}

struct Cipher {
    context: Opaque,
    kind: Opaque,
    init: CipherInit,
    update: CipherUpdate,
    finish: CipherFinal,
    control: CipherControl,
    set_padding: SetPadding,
    /// Whether it would pad the last block, unless told otherwise. An AEAD knows no padding.
    pads: bool,
    /// Whether its context knows its cipher.
    is_begun: bool,
    key: [u8; 64],
    nonce: [u8; 16],
    tag: [u8; TAG],
    /// Bytes since the stream began.
    streamed: u64,
}

impl<'l> Engine<'l> {
    /// Ready to work.
    ///
    /// # Errors
    ///
    /// The library lacks the op, or refuses it: a sentence.
    pub(crate) fn new(library: &'l Library, task: Task) -> Result<Self, String> {
        // Pages that were never written are all one page of zeros.
        let input = vec![0xa5; task.block];
        let output = vec![0x5a; task.block.max(1024) + PADDING];
        let missing = |why: String| format!("it cannot do {}: {why}", task.op.name);
        let doer = Doer::new(library, task).map_err(missing)?;
        let mut engine = Self { library, task, doer, input, output };
        engine.prepare().map_err(missing)?;
        engine.op().map_err(missing)?;
        Ok(engine)
    }

    /// Keys and nonces, and a message that decrypts, before any op.
    fn prepare(&mut self) -> Result<(), String> {
        let (task, library) = (self.task, self.library);
        let Doer::Cipher(cipher) = &mut self.doer else { return Ok(()) };
        if task.decrypt && task.op.class == Class::Aead && task.renews != Renews::Nothing {
            // What is decrypted has to have the tag of this key and nonce.
            let mut sealing = Cipher::new(library, task.op, false)?;
            sealing.begin(library, Renews::Key, false)?;
            let mut made = vec![0; task.block + PADDING];
            sealing.update(library, Some(&self.input), &mut made, task.block, task.chunk)?;
            sealing.end(library, task.op, false)?;
            cipher.tag = sealing.tag;
            self.input.copy_from_slice(&made[..task.block]);
        }
        cipher.begin(library, Renews::Key, task.decrypt)
    }

    /// Ops one after the other.
    pub(crate) fn ops(&mut self, count: u64) -> Result<(), String> {
        let (task, library) = (self.task, self.library);
        match &mut self.doer {
            // A stream whose calls are whole blocks: nothing stands between two calls, as in `openssl speed`. The few
            // nanoseconds of `op` are some percent of a block of 16 bytes.
            Doer::Cipher(cipher) if task.renews == Renews::Nothing && task.chunk >= task.block => {
                cipher.stream(library, &mut self.output[..task.block], task.decrypt, count)
            }
            _ => (0..count).try_for_each(|_| self.op()),
        }
    }

    /// One op.
    #[inline]
    fn op(&mut self) -> Result<(), String> {
        let (task, library) = (self.task, self.library);
        match &mut self.doer {
            Doer::Cipher(cipher) => {
                // In place, as TLS and `openssl speed` do it. A message that has to pass its tag is kept.
                let has_tag = task.decrypt && task.op.class == Class::Aead && task.renews != Renews::Nothing;
                let input = has_tag.then_some(self.input.as_slice());
                if task.renews == Renews::Nothing {
                    cipher.streamed += task.block as u64;
                    if cipher.streamed > STREAM_BYTES {
                        cipher.begin(library, Renews::Nonce, task.decrypt)?;
                    }
                    return cipher.update(library, input, &mut self.output, task.block, task.chunk);
                }
                if !has_tag {
                    // A nonce must not come twice; libraries may insist. What is decrypted has its own.
                    cipher.next_nonce();
                }
                cipher.begin(library, task.renews, task.decrypt)?;
                cipher.update(library, input, &mut self.output, task.block, task.chunk)?;
                cipher.end(library, task.op, task.decrypt)
            }
            Doer::Digest { context, kind, init, update, finish } => {
                let mut length: c_uint = 0;
                // SAFETY: the input is as long as told, and no digest is longer than the room for it.
                let done = unsafe {
                    init(*context, *kind, null_mut()) == 1
                        && self.input.chunks(task.chunk).all(|part| update(*context, part.as_ptr(), part.len()) == 1)
                        && finish(*context, self.output.as_mut_ptr(), &mut length) == 1
                };
                if done { Ok(()) } else { Err(library.failed("EVP_Digest")) }
            }
            Doer::Sign { context, sign, tbs } => {
                let mut length = self.output.len();
                // SAFETY: the context is ready to sign, the room and its length are as told.
                let done = unsafe { sign(*context, self.output.as_mut_ptr(), &mut length, tbs.as_ptr(), tbs.len()) };
                if done == 1 { Ok(()) } else { Err(library.failed("signing")) }
            }
            Doer::Verify { context, verify, tbs, signature } => {
                // SAFETY: the context is ready to verify, lengths are as told.
                let done = unsafe { verify(*context, signature.as_ptr(), signature.len(), tbs.as_ptr(), tbs.len()) };
                if done == 1 { Ok(()) } else { Err(library.failed("verifying")) }
            }
            Doer::Derive { context, derive } => {
                let mut length = self.output.len();
                // SAFETY: the context has its peer; the room and its length are as told.
                let done = unsafe { derive(*context, self.output.as_mut_ptr(), &mut length) };
                if done == 1 { Ok(()) } else { Err(library.failed("EVP_PKEY_derive")) }
            }
            Doer::Random(random) => {
                // SAFETY: the room is longer than the block.
                let done = unsafe { random(self.output.as_mut_ptr(), task.block as c_int) };
                if done == 1 { Ok(()) } else { Err(library.failed("RAND_bytes")) }
            }
        }
    }

    /// One op of the task's kind on this input, and what it gives. An AEAD's tag stands behind its text.
    pub(crate) fn answer(
        library: &'l Library,
        task: Task,
        key: &[u8],
        iv: &[u8],
        aad: &[u8],
        input: &[u8],
    ) -> Result<Vec<u8>, String> {
        match task.op.class {
            Class::Cipher { .. } | Class::Aead => {
                let is_aead = task.op.class == Class::Aead;
                let mut cipher = Cipher::new(library, task.op, task.decrypt)?;
                let most = cipher.key.len();
                cipher.key[..key.len().min(most)].copy_from_slice(&key[..key.len().min(most)]);
                cipher.nonce[..iv.len().min(16)].copy_from_slice(&iv[..iv.len().min(16)]);
                let text = if is_aead && task.decrypt { &input[..input.len().saturating_sub(TAG)] } else { input };
                if is_aead && task.decrypt {
                    cipher.tag = input[text.len()..].try_into().map_err(|_| "there is no tag".to_owned())?;
                }
                cipher.begin(library, Renews::Key, task.decrypt)?;
                if !aad.is_empty() {
                    cipher.authenticate(library, aad)?;
                }
                let mut made = vec![0; text.len() + PADDING];
                // XTS takes a message in one call.
                let chunk = if task.op.name.ends_with("-xts") { text.len() } else { task.chunk };
                cipher.update(library, Some(text), &mut made, text.len(), chunk)?;
                cipher.end(library, task.op, task.decrypt)?;
                made.truncate(text.len());
                if is_aead && !task.decrypt {
                    made.extend(cipher.tag);
                }
                Ok(made)
            }
            Class::Digest => {
                let mut engine = Self::new(library, Task { block: input.len(), ..task })?;
                engine.input = input.to_vec();
                engine.op()?;
                // Bytes of a digest are not asked for: the longest is 64, and the answer is as long as its algorithm says.
                Ok(engine.output[..digest_bytes(task.op.name)].to_vec())
            }
            Class::Sign => {
                let (context, sign) = signer(library, task.op, key)?;
                let mut made = vec![0; 1024];
                let mut length = made.len();
                // SAFETY: as in `op`.
                let done = unsafe { sign(context, made.as_mut_ptr(), &mut length, input.as_ptr(), input.len()) };
                made.truncate(length);
                if done == 1 { Ok(made) } else { Err(library.failed("signing")) }
            }
            Class::Verify => {
                let (tbs, signature) = input.split_at(signed_bytes(task.op).min(input.len()));
                let (context, verify) = verifier(library, task.op, key)?;
                // SAFETY: as in `op`.
                let done = unsafe { verify(context, signature.as_ptr(), signature.len(), tbs.as_ptr(), tbs.len()) };
                Ok(vec![u8::from(done == 1)])
            }
            Class::Agree => {
                let (context, derive) = deriver(library, key, input)?;
                let mut made = vec![0; 64];
                let mut length = made.len();
                // SAFETY: as in `op`.
                let done = unsafe { derive(context, made.as_mut_ptr(), &mut length) };
                made.truncate(length);
                if done == 1 { Ok(made) } else { Err(library.failed("EVP_PKEY_derive")) }
            }
            Class::Random => {
                let mut engine = Self::new(library, Task { block: 64, ..task })?;
                engine.op()?;
                Ok(engine.output[..64].to_vec())
            }
        }
    }
}

/// Bytes of what a key signs in the known answers: a digest of 32, but a message of 2 in Ed25519's vector.
fn signed_bytes(op: &Op) -> usize {
    if op.function == "ed25519" { 2 } else { 32 }
}

fn digest_bytes(name: &str) -> usize {
    match name {
        "md5" => 16,
        "sha1" => 20,
        "sha224" => 28,
        "sha384" => 48,
        "sha512" | "sha3-512" | "blake2b512" => 64,
        _ => 32,
    }
}

impl Doer {
    fn new(library: &Library, task: Task) -> Result<Self, String> {
        Ok(match task.op.class {
            Class::Cipher { .. } | Class::Aead => Self::Cipher(Cipher::new(library, task.op, task.decrypt)?),
            Class::Digest => {
                let kind = library.made(task.op.function)?;
                // Before 1.1.0 it had the other name.
                let context = library.made("EVP_MD_CTX_new").or_else(|_| library.made("EVP_MD_CTX_create"))?;
                // SAFETY: types as in openssl/evp.h.
                let (init, update, finish) = unsafe {
                    (
                        library.function("EVP_DigestInit_ex")?,
                        library.function("EVP_DigestUpdate")?,
                        library.function("EVP_DigestFinal_ex")?,
                    )
                };
                Self::Digest { context, kind: fetched(library, task.op.name).unwrap_or(kind), init, update, finish }
            }
            Class::Sign => {
                let (context, sign) = signer(library, task.op, &own_key(task.op)?)?;
                Self::Sign { context, sign, tbs: vec![0x3c; 32] }
            }
            Class::Verify => {
                let key = own_key(task.op)?;
                let (context, sign) = signer(library, task.op, &key)?;
                let (tbs, mut signature) = (vec![0x3c; 32], vec![0; 1024]);
                let mut length = signature.len();
                // SAFETY: the context is ready to sign, the room and its length are as told.
                if unsafe { sign(context, signature.as_mut_ptr(), &mut length, tbs.as_ptr(), tbs.len()) } != 1 {
                    return Err(library.failed("signing"));
                }
                signature.truncate(length);
                let (context, verify) = verifier(library, task.op, &key)?;
                Self::Verify { context, verify, tbs, signature }
            }
            Class::Agree => {
                // The base point is as good a peer as any.
                let mut peer = [0; 32];
                peer[0] = 9;
                let (context, derive) = deriver(library, &own_key(task.op)?, &peer)?;
                Self::Derive { context, derive }
            }
            // SAFETY: type as in openssl/rand.h.
            Class::Random => Self::Random(unsafe { library.function("RAND_bytes") }?),
        })
    }
}

/// The algorithm as OpenSSL 3 wants it, which spares it a search in each op; `None`: the library has no such function.
fn fetched(library: &Library, name: &str) -> Option<Opaque> {
    // SAFETY: type as in openssl/evp.h since 3.0.
    let fetch =
        unsafe { library.function::<unsafe extern "C" fn(Opaque, *const u8, *const u8) -> Opaque>("EVP_MD_fetch") }
            .ok()?;
    let name = match name {
        "sha1" | "md5" | "sha3-256" | "sha3-512" | "blake2b512" | "blake2s256" => name.to_ascii_uppercase(),
        sha2 => format!("SHA2-{}", &sha2[3..]),
    };
    let name = format!("{}\0", name.replace("BLAKE2B512", "BLAKE2B-512").replace("BLAKE2S256", "BLAKE2S-256"));
    // SAFETY: no library context, a name that a zero ends, no properties.
    let kind = unsafe { fetch(null_mut(), name.as_ptr(), null()) };
    (!kind.is_null()).then_some(kind)
}

/// The key that ops of a kind work with.
fn own_key(op: &Op) -> Result<Vec<u8>, String> {
    let raw = |algorithm: u8| {
        // PKCS #8 of RFC 8410: version 0, the algorithm (1.3.101.110 or .112), an octet string of 32 bytes.
        let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, algorithm, 4, 0x22, 4, 0x20];
        [&head[..], &[0x42; 32]].concat()
    };
    match op.function {
        "ed25519" => Ok(raw(0x70)),
        "x25519" => Ok(raw(0x6e)),
        name => known::key(name).map(<[u8]>::to_vec).ok_or_else(|| "there is no key for it".to_owned()),
    }
}

fn private_key(library: &Library, der: &[u8]) -> Result<Opaque, String> {
    type FromDer = unsafe extern "C" fn(*mut Opaque, *mut *const c_uchar, c_long) -> Opaque;
    // SAFETY: type as in openssl/evp.h.
    let from_der = unsafe { library.function::<FromDer>("d2i_AutoPrivateKey") }?;
    let mut at = der.as_ptr();
    // SAFETY: the DER is as long as told; no object is reused.
    let key = unsafe { from_der(null_mut(), &mut at, der.len() as c_long) };
    if key.is_null() { Err(library.failed("d2i_AutoPrivateKey")) } else { Ok(key) }
}

fn key_context(library: &Library, key: Opaque, step: &str) -> Result<Opaque, String> {
    // SAFETY: types as in openssl/evp.h.
    let (new, step_of) = unsafe {
        (
            library.function::<unsafe extern "C" fn(Opaque, Opaque) -> Opaque>("EVP_PKEY_CTX_new")?,
            library.function::<KeyStep>(step)?,
        )
    };
    // SAFETY: a key, and no engine.
    let context = unsafe { new(key, null_mut()) };
    // SAFETY: a new context of that key.
    if context.is_null() || unsafe { step_of(context) } != 1 {
        return Err(library.failed(step));
    }
    Ok(context)
}

/// Ed25519 signs messages, by functions of other names.
fn message_context(library: &Library, key: Opaque, init: &str) -> Result<Opaque, String> {
    type Init = unsafe extern "C" fn(Opaque, Opaque, Opaque, Opaque, Opaque) -> c_int;
    let context = library.made("EVP_MD_CTX_new")?;
    // SAFETY: type as in openssl/evp.h.
    let begin = unsafe { library.function::<Init>(init) }?;
    // SAFETY: a new context and a key; no digest, which Ed25519 has of its own.
    if unsafe { begin(context, null_mut(), null_mut(), null_mut(), key) } != 1 {
        return Err(library.failed(init));
    }
    Ok(context)
}

fn signer(library: &Library, op: &Op, der: &[u8]) -> Result<(Opaque, Sign), String> {
    let key = private_key(library, der)?;
    let is_message = op.function == "ed25519";
    let context = if is_message {
        message_context(library, key, "EVP_DigestSignInit")?
    } else {
        key_context(library, key, "EVP_PKEY_sign_init")?
    };
    // SAFETY: both have this type in openssl/evp.h.
    Ok((context, unsafe { library.function(if is_message { "EVP_DigestSign" } else { "EVP_PKEY_sign" }) }?))
}

fn verifier(library: &Library, op: &Op, der: &[u8]) -> Result<(Opaque, Verify), String> {
    let key = private_key(library, der)?;
    let is_message = op.function == "ed25519";
    let context = if is_message {
        message_context(library, key, "EVP_DigestVerifyInit")?
    } else {
        key_context(library, key, "EVP_PKEY_verify_init")?
    };
    // SAFETY: both have this type in openssl/evp.h.
    Ok((context, unsafe { library.function(if is_message { "EVP_DigestVerify" } else { "EVP_PKEY_verify" }) }?))
}

fn deriver(library: &Library, der: &[u8], peer: &[u8]) -> Result<(Opaque, Derive), String> {
    type FromRaw = unsafe extern "C" fn(c_int, Opaque, *const c_uchar, usize) -> Opaque;
    /// `NID_X25519` (`EVP_PKEY_X25519`); AWS-LC has another number.
    const X25519: c_int = 1034;
    const X25519_OF_AWS_LC: c_int = 948;
    let context = key_context(library, private_key(library, der)?, "EVP_PKEY_derive_init")?;
    // SAFETY: types as in openssl/evp.h.
    let (from_raw, set_peer) = unsafe {
        (
            library.function::<FromRaw>("EVP_PKEY_new_raw_public_key")?,
            library.function::<unsafe extern "C" fn(Opaque, Opaque) -> c_int>("EVP_PKEY_derive_set_peer")?,
        )
    };
    let id = if matches!(library, Library::BuiltIn) { X25519_OF_AWS_LC } else { X25519 };
    // SAFETY: no engine, and a key as long as told; a context ready to derive.
    let is_set = unsafe {
        let key = from_raw(id, null_mut(), peer.as_ptr(), peer.len());
        !key.is_null() && set_peer(context, key) == 1
    };
    if !is_set {
        return Err(library.failed("EVP_PKEY_derive_set_peer"));
    }
    // SAFETY: type as in openssl/evp.h.
    Ok((context, unsafe { library.function("EVP_PKEY_derive") }?))
}

impl Cipher {
    fn new(library: &Library, op: &Op, decrypt: bool) -> Result<Self, String> {
        let function = op.function;
        let kind = library.made(function)?;
        let context = library.made("EVP_CIPHER_CTX_new")?;
        // SAFETY: types as in openssl/evp.h; `int` for lengths in every version.
        let (init, update, finish, control, set_padding) = unsafe {
            (
                library.function("EVP_CipherInit_ex")?,
                // As `openssl speed` does it: EVP_CipherUpdate is one of these two behind another call.
                library.function(if decrypt { "EVP_DecryptUpdate" } else { "EVP_EncryptUpdate" })?,
                library.function("EVP_CipherFinal_ex")?,
                library.function("EVP_CIPHER_CTX_ctrl")?,
                library.function("EVP_CIPHER_CTX_set_padding")?,
            )
        };
        let pads = op.class != Class::Aead;
        // The two halves of an XTS key must differ.
        let key = std::array::from_fn(|place| place as u8 ^ 0x5a);
        Ok(Self {
            context,
            kind,
            init,
            update,
            finish,
            control,
            set_padding,
            pads,
            is_begun: false,
            key,
            nonce: [0x0f; 16],
            tag: [0; TAG],
            streamed: 0,
        })
    }

    fn next_nonce(&mut self) {
        for byte in &mut self.nonce {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }

    /// Begins a message, with the nonce and, where that is asked for, the key.
    #[inline]
    fn begin(&mut self, library: &Library, renews: Renews, decrypt: bool) -> Result<(), String> {
        // Naming the cipher again would make the library look it up again.
        let kind = if self.is_begun { null_mut() } else { self.kind };
        let key = if renews == Renews::Key { self.key.as_ptr() } else { null() };
        self.streamed = 0;
        // SAFETY: no cipher here has a key longer than 64 bytes or a nonce longer than 16.
        let done =
            unsafe { (self.init)(self.context, kind, null_mut(), key, self.nonce.as_ptr(), c_int::from(!decrypt)) };
        if done != 1 {
            return Err(library.failed("EVP_CipherInit_ex"));
        }
        if !self.is_begun && self.pads {
            // Blocks are whole. With padding the last one would be held back.
            // SAFETY: a context with its cipher.
            unsafe { (self.set_padding)(self.context, 0) };
        }
        self.is_begun = true;
        Ok(())
    }

    /// So many blocks of a stream, each worked on in place by one call.
    fn stream(&mut self, library: &Library, block: &mut [u8], decrypt: bool, count: u64) -> Result<(), String> {
        let bytes = block.len() as u64;
        for _ in 0..count {
            self.streamed += bytes;
            if self.streamed > STREAM_BYTES {
                self.begin(library, Renews::Nonce, decrypt)?;
            }
            let (place, mut written) = (block.as_mut_ptr(), 0);
            // SAFETY: without padding, and with blocks that are whole, a call writes as many bytes as it reads, in place.
            let done =
                unsafe { (self.update)(self.context, place, &mut written, place.cast_const(), block.len() as c_int) };
            if done != 1 {
                return Err(library.failed("EVP_EncryptUpdate or EVP_DecryptUpdate"));
            }
        }
        Ok(())
    }

    /// Text that is authenticated alone.
    fn authenticate(&mut self, library: &Library, aad: &[u8]) -> Result<(), String> {
        let mut written = 0;
        // SAFETY: no output means additional data; it is as long as told.
        let done = unsafe { (self.update)(self.context, null_mut(), &mut written, aad.as_ptr(), aad.len() as c_int) };
        if done == 1 { Ok(()) } else { Err(library.failed("EVP_EncryptUpdate or EVP_DecryptUpdate")) }
    }

    /// The text, in calls of `chunk` bytes, from the input to the output. `None`: in place, in the first `length` bytes of the
    /// output.
    #[inline]
    fn update(
        &mut self,
        library: &Library,
        input: Option<&[u8]>,
        output: &mut [u8],
        length: usize,
        chunk: usize,
    ) -> Result<(), String> {
        let length = input.map_or(length, <[u8]>::len).min(output.len().saturating_sub(PADDING));
        let to = output.as_mut_ptr();
        let from = input.map_or(to.cast_const(), <[u8]>::as_ptr);
        let (mut done, mut place) = (0, 0);
        while done < length {
            let part = chunk.max(1).min(length - done);
            let mut written: c_int = 0;
            // SAFETY: the output has room for the input and a block of padding; what a part writes is at most its length and
            // what was held back of the part before it.
            let is_done =
                unsafe { (self.update)(self.context, to.add(place), &mut written, from.add(done), part as c_int) };
            done += part;
            place += written.max(0) as usize;
            if is_done != 1 || place > done + 16 {
                return Err(library.failed("EVP_EncryptUpdate or EVP_DecryptUpdate"));
            }
        }
        Ok(())
    }

    /// Ends a message: the tag is made, or held against the text.
    #[inline]
    fn end(&mut self, library: &Library, op: &Op, decrypt: bool) -> Result<(), String> {
        // Of other ciphers nothing is left: their blocks are whole, and padding is none of the work.
        if op.class != Class::Aead {
            return Ok(());
        }
        let (mut tail, mut rest) = ([0_u8; 64], 0);
        let tag = |cipher: &mut Self, what| {
            // SAFETY: the tag is as long as told.
            unsafe { (cipher.control)(cipher.context, what, TAG as c_int, cipher.tag.as_mut_ptr().cast()) == 1 }
        };
        if decrypt && !tag(self, CTRL_SET_TAG) {
            return Err(library.failed("EVP_CIPHER_CTX_ctrl"));
        }
        // SAFETY: no more than a block is left to write.
        if unsafe { (self.finish)(self.context, tail.as_mut_ptr(), &mut rest) } != 1 {
            return Err(library.failed("EVP_CipherFinal_ex"));
        }
        if !decrypt && !tag(self, CTRL_GET_TAG) {
            return Err(library.failed("EVP_CIPHER_CTX_ctrl"));
        }
        Ok(())
    }
}
