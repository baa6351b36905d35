//! The kernel's own list of what it can do: `/proc/crypto`.

use super::algorithm::Algorithm;

/// An implementation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    /// The algorithm, such as `cbc(aes)`.
    name: String,
    /// The implementation, such as `cbc-aes-aesni`.
    pub(crate) driver: String,
    pub(crate) module: String,
    pub(crate) priority: u32,
    kind: String,
    /// Whether only other parts of the kernel may use it.
    is_internal: bool,
}

/// All that the table tells.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(Vec<Entry>);

impl Table {
    /// What the kernel has by now: implementations in modules appear when they are asked for.
    pub(crate) fn read() -> Self {
        Self::of(&std::fs::read_to_string("/proc/crypto").unwrap_or_default())
    }

    fn of(text: &str) -> Self {
        let entry = |paragraph: &str| {
            let mut entry = Entry::default();
            for line in paragraph.lines() {
                let Some((key, value)) = line.split_once(':') else { continue };
                let value = value.trim();
                match key.trim() {
                    "name" => entry.name = value.to_owned(),
                    "driver" => entry.driver = value.to_owned(),
                    "module" => entry.module = value.to_owned(),
                    "priority" => entry.priority = value.parse().unwrap_or(0),
                    "type" => entry.kind = value.to_owned(),
                    "internal" => entry.is_internal = value == "yes",
                    _ => {}
                }
            }
            (!entry.driver.is_empty()).then_some(entry)
        };
        Self(text.split("\n\n").filter_map(entry).collect())
    }

    /// What does this algorithm, the preferred first.
    pub(crate) fn that_do(&self, algorithm: &Algorithm) -> Vec<&Entry> {
        let kinds: &[&str] = match algorithm.kind {
            "skcipher" => &["skcipher", "lskcipher"],
            "hash" => &["shash", "ahash"],
            _ => &["aead"],
        };
        let mut entries: Vec<&Entry> = self
            .0
            .iter()
            .filter(|entry| entry.name == algorithm.name && kinds.contains(&&*entry.kind) && !entry.is_internal)
            .collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.priority));
        entries
    }

    /// The name to bind for what the user calls it: a driver, a module, or a cipher that a mode is built upon. A driver that is
    /// not here may be in a module yet to be loaded.
    pub(crate) fn bound_name(&self, algorithm: &Algorithm, wanted: &str) -> String {
        let doers = self.that_do(algorithm);
        let plain = |name: &str| name.replace('-', "_");
        let by_module = || doers.iter().find(|entry| plain(&entry.module) == plain(wanted) && wanted != "kernel");
        if doers.iter().any(|entry| entry.driver == wanted) {
            return wanted.to_owned();
        }
        if let Some(entry) = by_module() {
            return entry.driver.clone();
        }
        let is_cipher = self.0.iter().any(|entry| entry.driver == wanted && entry.kind == "cipher");
        is_cipher.then(|| algorithm.with_cipher(wanted)).flatten().unwrap_or_else(|| wanted.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops;
    use proptest::prelude::*;

    const TEXT: &str = "\
name         : cbc(aes)
driver       : cbc-aes-aesni
module       : aesni_intel
priority     : 400
internal     : no
type         : skcipher

name         : cbc(aes)
driver       : __cbc-aes-aesni
module       : aesni_intel
priority     : 500
internal     : yes
type         : skcipher

name         : cbc(aes)
driver       : cbc(aes-generic)
module       : kernel
priority     : 100
internal     : no
type         : skcipher

name         : aes
driver       : aes-generic
module       : kernel
priority     : 100
type         : cipher
";

    #[test]
    fn the_preferred_comes_first_and_names_are_understood() {
        let table = Table::of(TEXT);
        let cbc = Algorithm::of(ops::of_name("aes-256-cbc").unwrap()).unwrap();
        let gcm = Algorithm::of(ops::of_name("aes-256-gcm").unwrap()).unwrap();
        let drivers: Vec<&str> = table.that_do(&cbc).iter().map(|entry| &*entry.driver).collect();
        assert_eq!(drivers, ["cbc-aes-aesni", "cbc(aes-generic)"]);
        assert!(table.that_do(&gcm).is_empty());
        for (wanted, bound) in [
            ("cbc-aes-aesni", "cbc-aes-aesni"),
            ("aesni-intel", "cbc-aes-aesni"),
            ("aesni_intel", "cbc-aes-aesni"),
            ("aes-generic", "cbc(aes-generic)"),
            ("cbc-aes-ccp", "cbc-aes-ccp"),
            ("kernel", "kernel"),
        ] {
            assert_eq!(table.bound_name(&cbc, wanted), bound, "{wanted}");
        }
    }

    proptest! {
        #[test]
        fn no_table_makes_it_stumble(text in "(name|driver|priority|type)? ?:? ?.{0,30}\n{0,2}.{0,20}") {
            let _ = Table::of(&text);
        }
    }
}
