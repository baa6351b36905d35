//! Known answers: what each op has to give, from published vectors where there are any. A fast wrong answer is a failure.

use crate::child_process::{hex, unhex};
use crate::ops::{self, Class};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, UnparsedPublicKey};

/// One op with what it is done on, and what it gives. All texts are hexadecimal digits.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    op: &'static str,
    /// Key of a cipher; private key in DER, or `@` and the name of one of [`key`].
    key: &'static str,
    iv: &'static str,
    aad: &'static str,
    input: &'static str,
    /// Empty where each answer is another one.
    gives: &'static str,
}

const fn vector(
    op: &'static str,
    key: &'static str,
    iv: &'static str,
    aad: &'static str,
    input: &'static str,
    gives: &'static str,
) -> Known {
    Known { op, key, iv, aad, input, gives }
}

/// What is signed by the keys of our own: the message whose SHA-256 the vectors of keys have.
const MESSAGE: &[u8] = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

/// Public keys as uncompressed points.
const P256: &str = "041e4a80d723c0e0a131e373c31e2888ef1cc7ebb5533bc1a1b87255b3f5674f63a2857b50ce1c58bb75ca087ed61faddadc\
     c0579bd5d0e899f4abf4d57e69075e";
const P384: &str = "04b5bff729f882a148a8dc35e16fcea1320185aa2905b90833d72d4fdf854c93d010b7539517f64330bc457d5b14fb999d9f\
     1d7023bfa919d160e94e2cba6080d2c48d7dd727a18d56b45a838bd306bc2d762e9ddd92661ad65006eb38f521e4dd";

/// A private key of our own, made for this and kept in the open: in DER, as PKCS #1 (RSA) or SEC 1 (ECDSA) has it.
pub fn key(name: &str) -> Option<&'static [u8]> {
    Some(match name {
        "rsa-2048" => include_bytes!("keys/rsa-2048.der"),
        "rsa-3072" => include_bytes!("keys/rsa-3072.der"),
        "rsa-4096" => include_bytes!("keys/rsa-4096.der"),
        "ecdsa-p256" => include_bytes!("keys/ecdsa-p256.der"),
        "ecdsa-p384" => include_bytes!("keys/ecdsa-p384.der"),
        _ => return None,
    })
}

/// What is known of an op. Ops without an answer of their own (random) have a vector that tells only how long it is.
pub fn answers(op: &str) -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().filter(move |known| known.op == op)
}

impl Known {
    /// The order for a child. Decrypting is asked for what encrypting gave.
    pub(crate) fn order(&self, decrypt: bool) -> String {
        let key = match self.key.strip_prefix('@') {
            Some(name) => hex(key(name).unwrap_or_default()),
            None => digits(self.key).to_owned(),
        };
        let input = if decrypt { self.gives } else { self.input };
        format!("answer {key} {} {} {}", digits(self.iv), digits(self.aad), digits(input))
    }

    /// Whether this is the answer.
    ///
    /// # Errors
    ///
    /// What is wrong, as a sentence for the user.
    pub fn check(&self, decrypt: bool, answered: &[u8]) -> Result<(), String> {
        let wrong = |expected: &str| {
            let shown = |text: &str| if text.len() > 40 { format!("{}...", &text[..40]) } else { text.to_owned() };
            Err(format!(
                "{} gives a wrong answer: expected {}, got {}",
                self.op,
                shown(expected),
                shown(&hex(answered))
            ))
        };
        let verified = |algorithm, public: &str, name: &str| {
            let public = unhex(public).unwrap_or_default();
            match UnparsedPublicKey::new(algorithm, public).verify(MESSAGE, answered) {
                Ok(()) => Ok(()),
                Err(_) => wrong(&format!("a signature that {name} verifies")),
            }
        };
        match ops::of_name(self.op).map(|op| op.class) {
            Some(Class::Random) => {
                let is_constant = answered.iter().all(|byte| Some(byte) == answered.first());
                if answered.len() < 16 || is_constant { wrong("bytes that differ") } else { Ok(()) }
            }
            Some(Class::Sign) if self.op == "ecdsa-p256" => verified(&ECDSA_P256_SHA256_ASN1, P256, "P-256"),
            Some(Class::Sign) if self.op == "ecdsa-p384" => verified(&ECDSA_P384_SHA256_ASN1, P384, "P-384"),
            _ => {
                let expected = if decrypt { self.input } else { self.gives };
                if Some(answered) == unhex(expected).as_deref() { Ok(()) } else { wrong(expected) }
            }
        }
    }
}

fn digits(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// All vectors. Those of sources marked "method" are of an algorithm's own test program, with the answer of another
/// implementation (Python's hashlib).
const KNOWN: &[Known] = &[
    // NIST SP 800-38A, F.2.
    vector(
        "aes-128-cbc",
        "2b7e151628aed2a6abf7158809cf4f3c",
        "000102030405060708090a0b0c0d0e0f",
        "",
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f\
     2445df4f9b17ad2b417be66c3710",
        "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e222295163ff1\
     caa1681fac09120eca307586e1a7",
    ),
    // NIST SP 800-38A, F.5.
    vector(
        "aes-128-ctr",
        "2b7e151628aed2a6abf7158809cf4f3c",
        "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        "",
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f\
     2445df4f9b17ad2b417be66c3710",
        "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e03\
     1dda2fbe03d1792170a0f3009cee",
    ),
    // NIST SP 800-38A, F.2.
    vector(
        "aes-192-cbc",
        "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
        "000102030405060708090a0b0c0d0e0f",
        "",
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f\
     2445df4f9b17ad2b417be66c3710",
        "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e008b0\
     e27988598881d920a9e64f5615cd",
    ),
    // NIST SP 800-38A, F.5.
    vector(
        "aes-192-ctr",
        "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
        "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        "",
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f\
     2445df4f9b17ad2b417be66c3710",
        "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d665620abf74f78\
     a7f6d29809585a97daec58c6b050",
    ),
    // NIST SP 800-38A, F.2.
    vector(
        "aes-256-cbc",
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        "000102030405060708090a0b0c0d0e0f",
        "",
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f\
     2445df4f9b17ad2b417be66c3710",
        "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461b2eb\
     05e2c39be9fcda6c19078c6a9d1b",
    ),
    // NIST SP 800-38A, F.5.
    vector(
        "aes-256-ctr",
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        "",
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f\
     2445df4f9b17ad2b417be66c3710",
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9\
     c58db67aada613c2dd08457941a6",
    ),
    // McGrew and Viega, test cases 4, 10 and 16.
    vector(
        "aes-128-gcm",
        "feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16a\
     edf5aa0de657ba637b39",
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba3\
     0b396a0aac973d58e0915bc94fbc3221a5db94fae95ae7121a47",
    ),
    // McGrew and Viega, test cases 4, 10 and 16.
    vector(
        "aes-192-gcm",
        "feffe9928665731c6d6a8f9467308308feffe9928665731c",
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16a\
     edf5aa0de657ba637b39",
        "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525ac619d18c84a3f4718e2\
     448b2fe324d9ccda27102519498e80f1478f37ba55bd6d27618c",
    ),
    // McGrew and Viega, test cases 4, 10 and 16.
    vector(
        "aes-256-gcm",
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16a\
     edf5aa0de657ba637b39",
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f6\
     1e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b",
    ),
    // IEEE 1619-2007, B, vectors 2 and 10.
    vector(
        "aes-128-xts",
        "1111111111111111111111111111111122222222222222222222222222222222",
        "33333333330000000000000000000000",
        "",
        "4444444444444444444444444444444444444444444444444444444444444444",
        "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0",
    ),
    // IEEE 1619-2007, B, vectors 2 and 10.
    vector(
        "aes-256-xts",
        "2718281828459045235360287471352662497757247093699959574966967627314159265358979323846264338327950288\
     4197169399375105820974944592",
        "ff000000000000000000000000000000",
        "",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031\
     32333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f60616263\
     6465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495\
     969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7\
     c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9\
     fafbfcfdfeff000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b\
     2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d\
     5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f\
     909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1\
     c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3\
     f4f5f6f7f8f9fafbfcfdfeff",
        "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b5d31e276f8fe4a8d66b317f9ac683f44680a\
     86ac35adfc3345befecb4bb188fd5776926c49a3095eb108fd1098baec70aaa66999a72a82f27d848b21d4a741b0c5cd4d5f\
     ff9dac89aeba122961d03a757123e9870f8acf1000020887891429ca2a3e7a7d7df7b10355165c8b9a6d0a7de8b062c4500d\
     c4cd120c0f7418dae3d0b5781c34803fa75421c790dfe1de1834f280d7667b327f6c8cd7557e12ac3a0f93ec05c52e0493ef\
     31a12d3d9260f79a289d6a379bc70c50841473d1a8cc81ec583e9645e07b8d9670655ba5bbcfecc6dc3966380ad8fecb17b6\
     ba02469a020a84e18e8f84252070c13e9f1f289be54fbc481457778f616015e1327a02b140f1505eb309326d68378f837459\
     5c849d84f4c333ec4423885143cb47bd71c5edae9be69a2ffeceb1bec9de244fbe15992b11b77c040f12bd8f6a975a44a0f9\
     0c29a9abc3d4d893927284c58754cce294529f8614dcd2aba991925fedc4ae74ffac6e333b93eb4aff0479da9a410e4450e0\
     dd7ae4c6e2910900575da401fc07059f645e8b7e9bfdef33943054ff84011493c27b3429eaedb4ed5376441a77ed43851ad7\
     7f16f541dfd269d50d6a5f14fb0aab1cbb4c1550be97f7ab4066193c4caa773dad38014bd2092fa755c824bb5e54c4f36ffd\
     a9fcea70b9c6e693e148c151",
    ),
    // RFC 8439, 2.8.2.
    vector(
        "chacha20-poly1305",
        "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        "070000004041424344454647",
        "50515253c0c1c2c3c4c5c6c7",
        "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f75\
     6c64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e7363726565\
     6e20776f756c642062652069742e",
        "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71\
     de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def0\
     8e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691",
    ),
    // RFC 1321 (method).
    vector(
        "md5",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "8215ef0796a20bcaaae116d3876c664a",
    ),
    // FIPS 180, SHA1 example.
    vector(
        "sha1",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
    ),
    // FIPS 180 example.
    vector(
        "sha224",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "75388b16512776cc5dba5da1fd890150b0c6455cb4f58b1952522525",
    ),
    // FIPS 180 example.
    vector(
        "sha256",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ),
    // FIPS 180 (method).
    vector(
        "sha384",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "3391fdddfc8dc7393707a65b1b4709397cf8b1d162af05abfe8f450de5f36bc6b0455a8520bc4e6f5fe95b1fe3c8452b",
    ),
    // FIPS 180 (method).
    vector(
        "sha512",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "204a8fc6dda82f0a0ced7beb8e08a41657c16ef468b228a8279be331a703c33596fd15c13b1b07f9aa1d3bea57789ca031ad\
     85c7a71dd70354ec631238ca3445",
    ),
    // FIPS 202 (method).
    vector(
        "sha3-256",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "41c0dba2a9d6240849100376a8235e2c82e1b9998a999e21db32dd97496d3376",
    ),
    // FIPS 202 (method).
    vector(
        "sha3-512",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "04a371e84ecfb5b8b77cb48610fca8182dd457ce6f326a0fd3d7ec2f1e91636dee691fbe0c985302ba1b0d8dc78c086346b5\
     33b49c030d99a27daf1139d6e75e",
    ),
    // RFC 7693 (method).
    vector(
        "blake2b512",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "7285ff3e8bd768d69be62b3bf18765a325917fa9744ac2f582a20850bc2b1141ed1b3e4528595acc90772bdf2d37dc8a4713\
     0b44f33a02e8730e5ad8e166e888",
    ),
    // RFC 7693 (method).
    vector(
        "blake2s256",
        "",
        "",
        "",
        "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e\
     6f706e6f7071",
        "6f4df5116a6f332edab1d9e10ee87df6557beab6259d7663f3bcd5722c13f189",
    ),
    // our own key, signed by OpenSSL.
    vector(
        "rsa-2048",
        "@rsa-2048",
        "",
        "",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        "22dcc166f68a90d8c127dc2b5a6befb30a6b004b9dee0c5dde62716916c2a03a83eaa9f3ea95f6bea7552f9795717c68efe6\
     772795c6d784b60dfa04b4898743296b0987d3153a1cbb88b0f398c8857b63d364decf541b2caffa22386e1f4e29b88654ca\
     e514be837afbfdc55664c8f90c5aa22dd1967bec913758106118480d1ae66f5ba3be6f6ca7557d79b5d3bbf99f0ee8e1f16c\
     a7a59c60b878ef9b462c7ad5d776ddd0749fb95aa6c0bfedb8d33e8555fdc198c73b74d07909086975ca95da5ab81f67b3a8\
     0dfd0856fbff3bf8e3c3f776958d4570dbba353b856020e1f25d6c67a2f37329b454bbc63271338c06e26670381a94de4a12\
     74a2e8b5689b",
    ),
    // the same.
    vector(
        "rsa-2048-verify",
        "@rsa-2048",
        "",
        "",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c122dcc166f68a90d8c127dc2b5a6befb30a6b\
     004b9dee0c5dde62716916c2a03a83eaa9f3ea95f6bea7552f9795717c68efe6772795c6d784b60dfa04b4898743296b0987\
     d3153a1cbb88b0f398c8857b63d364decf541b2caffa22386e1f4e29b88654cae514be837afbfdc55664c8f90c5aa22dd196\
     7bec913758106118480d1ae66f5ba3be6f6ca7557d79b5d3bbf99f0ee8e1f16ca7a59c60b878ef9b462c7ad5d776ddd0749f\
     b95aa6c0bfedb8d33e8555fdc198c73b74d07909086975ca95da5ab81f67b3a80dfd0856fbff3bf8e3c3f776958d4570dbba\
     353b856020e1f25d6c67a2f37329b454bbc63271338c06e26670381a94de4a1274a2e8b5689b",
        "01",
    ),
    // our own key, signed by OpenSSL.
    vector(
        "rsa-3072",
        "@rsa-3072",
        "",
        "",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        "6156e2fa616267ef3adb096b0401408b859af97722b2c170a74baf831ee1da2fb6ee8ba7bf7a748e05571753b3023d4b39c2\
     e5e7f4a6bd912ee55bfe3a014be3030a8f594c34a236ffd1e83c9ed99a5e3072e117c254b0d9a98b9204ff0602ad4405550a\
     6963c95b733890d9c031600b6fa7ace48db439876b1ccea01ab9f833b0b30a1f9751214692a64a14dc1060048c2ecda86c10\
     4f1cf6670fc3e8c5bb3fe88d7d652640ad38f47e3291b8e593c4ced66864b6c20b4e4d81c19e029a10bae7adc00f5b64fe8e\
     bdb25ea39b7952264aead8f3f2686e405b5620d38987b06e2db0ae801edf548648d6289fe4ff0da007449ed74a625c625d45\
     f5309ba8318dde612fe4b08a898b7ef7055049d3769c8e6bdbddcda73cf1008ef04d9e2744570050937c29a3350bbf396ebf\
     ea304d8e24ab5b831623264ac5d823ef387bab1838e50b22d39ff740012d11e8209c1c4d64f62f20b5f7390cb442b994daed\
     dbbf0dfb592c02888c710123edcfee3e8179becf371f55c364e64a17270b47d6e9c2",
    ),
    // the same.
    vector(
        "rsa-3072-verify",
        "@rsa-3072",
        "",
        "",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c16156e2fa616267ef3adb096b0401408b859a\
     f97722b2c170a74baf831ee1da2fb6ee8ba7bf7a748e05571753b3023d4b39c2e5e7f4a6bd912ee55bfe3a014be3030a8f59\
     4c34a236ffd1e83c9ed99a5e3072e117c254b0d9a98b9204ff0602ad4405550a6963c95b733890d9c031600b6fa7ace48db4\
     39876b1ccea01ab9f833b0b30a1f9751214692a64a14dc1060048c2ecda86c104f1cf6670fc3e8c5bb3fe88d7d652640ad38\
     f47e3291b8e593c4ced66864b6c20b4e4d81c19e029a10bae7adc00f5b64fe8ebdb25ea39b7952264aead8f3f2686e405b56\
     20d38987b06e2db0ae801edf548648d6289fe4ff0da007449ed74a625c625d45f5309ba8318dde612fe4b08a898b7ef70550\
     49d3769c8e6bdbddcda73cf1008ef04d9e2744570050937c29a3350bbf396ebfea304d8e24ab5b831623264ac5d823ef387b\
     ab1838e50b22d39ff740012d11e8209c1c4d64f62f20b5f7390cb442b994daeddbbf0dfb592c02888c710123edcfee3e8179\
     becf371f55c364e64a17270b47d6e9c2",
        "01",
    ),
    // our own key, signed by OpenSSL.
    vector(
        "rsa-4096",
        "@rsa-4096",
        "",
        "",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        "0e4ab8d7e058755125cf8e365514e33c5b41f496cbdcb4d2c5240aee32c8946c17395e2b27ff555168405e9db1295b103f61\
     674bb3a50238b2387c848ad6f23842a834d42c5e7f245cf7aaab00e3c2f5f91c1d45cb858a660c528a44e2c98cbdd390be8b\
     9816efe06513a30910971e8e96059e0c15fec1bcc35ef0511b393153b5e614f2259e98f98ec561e86545bde4a58edae03c85\
     5ceb954b95383438c01f5a118ce013f3572103e1ef1dd9cc79bae94a68624295fe94a81ea0ab2cb9a6aa9ce82932cdabeef4\
     9f847e82d547580c7ee4c64bb67e5d6d050fda14905278e370aa3b8443ce36bc54e1d41c96c6654c31c08eb4fee4a305f3c2\
     e35292ecfa93c1edc67bf4bfc7da035175534a375572786f14b7917bc50d4f6605d7353c0fe070fde6a0cf59ba35d4883c33\
     46b20f1ee13778f33d1b70d462f0c8a6e61f437d8c3d6ce770d240e32cb0bdad2f86aded74c5dd4049902352c76f2d931756\
     79db503027d00f5174fd36b8fed3c18b10f3bbfb2b70a82050b1c21eb3b549964dece6cb4b6bb88480f7f6b3b97955b72ddf\
     dc97b2ce6ce826e0c74650c1858bbab656e5347678747fceb65578d2a343993d0e116ac96698a93dabc7b58440b45a068dda\
     de73dd4e91d4bd078bee109dd02933f9d53ca76559a865b446012f1e769b7a50170d3cdbcf4247bf43894ebd1864879f2b19\
     81319e58ae185bd5dab16be3",
    ),
    // the same.
    vector(
        "rsa-4096-verify",
        "@rsa-4096",
        "",
        "",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c10e4ab8d7e058755125cf8e365514e33c5b41\
     f496cbdcb4d2c5240aee32c8946c17395e2b27ff555168405e9db1295b103f61674bb3a50238b2387c848ad6f23842a834d4\
     2c5e7f245cf7aaab00e3c2f5f91c1d45cb858a660c528a44e2c98cbdd390be8b9816efe06513a30910971e8e96059e0c15fe\
     c1bcc35ef0511b393153b5e614f2259e98f98ec561e86545bde4a58edae03c855ceb954b95383438c01f5a118ce013f35721\
     03e1ef1dd9cc79bae94a68624295fe94a81ea0ab2cb9a6aa9ce82932cdabeef49f847e82d547580c7ee4c64bb67e5d6d050f\
     da14905278e370aa3b8443ce36bc54e1d41c96c6654c31c08eb4fee4a305f3c2e35292ecfa93c1edc67bf4bfc7da03517553\
     4a375572786f14b7917bc50d4f6605d7353c0fe070fde6a0cf59ba35d4883c3346b20f1ee13778f33d1b70d462f0c8a6e61f\
     437d8c3d6ce770d240e32cb0bdad2f86aded74c5dd4049902352c76f2d93175679db503027d00f5174fd36b8fed3c18b10f3\
     bbfb2b70a82050b1c21eb3b549964dece6cb4b6bb88480f7f6b3b97955b72ddfdc97b2ce6ce826e0c74650c1858bbab656e5\
     347678747fceb65578d2a343993d0e116ac96698a93dabc7b58440b45a068ddade73dd4e91d4bd078bee109dd02933f9d53c\
     a76559a865b446012f1e769b7a50170d3cdbcf4247bf43894ebd1864879f2b1981319e58ae185bd5dab16be3",
        "01",
    ),
    // our own key; the signature differs each time and is verified.
    vector("ecdsa-p256", "@ecdsa-p256", "", "", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", ""),
    // our own key, signed by OpenSSL.
    vector(
        "ecdsa-p256-verify",
        "@ecdsa-p256",
        "",
        "",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c130450220445bac3bc9869e01849d794dd3d9\
     93a12768c2c435b9ca1feb8233c7994e88d4022100a5ab0f7d08bce6ae395891916a78f747b987bc5964f92aa3c60a6881d9\
     0c7f6d",
        "01",
    ),
    // our own key; the signature differs each time and is verified.
    vector("ecdsa-p384", "@ecdsa-p384", "", "", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", ""),
    // our own key, signed by OpenSSL.
    vector(
        "ecdsa-p384-verify",
        "@ecdsa-p384",
        "",
        "",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c13066023100e9be4438e1f827e1e07a667c36\
     594a159705133ed54f968ebab9ee5cd8b1839823298502c1f6330e4f0f261455e5d9bd023100d8a07a85ef0e9a6a8d7133b8\
     3fe0d047532bd6a77ed6b8d8370b3ad00d82508f48a53f4088b2b44d064d59483058b795",
        "01",
    ),
    // RFC 8032, 7.1, TEST 3.
    vector(
        "ed25519",
        "302e020100300506032b657004220420c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "",
        "",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c\
     15e9716ed28dc027beceea1ec40a",
    ),
    // RFC 8032, 7.1, TEST 3.
    vector(
        "ed25519-verify",
        "302e020100300506032b657004220420c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "",
        "",
        "af826291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659\
     4a7c15e9716ed28dc027beceea1ec40a",
        "01",
    ),
    // RFC 7748, 5.2.
    vector(
        "x25519",
        "302e020100300506032b656e04220420a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "",
        "",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    ),
    // Any answer is right that is long enough and not constant.
    vector("random", "", "", "", "", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_has_a_known_answer_and_another_one_is_wrong() {
        for name in ops::NAMES {
            let known: Vec<&Known> = answers(name).collect();
            assert!(!known.is_empty(), "{name}");
            for known in known {
                assert!(known.check(false, &[1; 3]).unwrap_err().contains("wrong answer"), "{name}");
                if !known.gives.is_empty() {
                    assert_eq!(known.check(false, &unhex(known.gives).unwrap()), Ok(()), "{name}");
                }
            }
        }
    }
}
