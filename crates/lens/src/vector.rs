//! Where a libcrypto keeps its set of CPU features (`OPENSSL_ia32cap_P`, `OPENSSL_armcap_P`).
//!
//! The symbol is hidden, so it is found by what it holds: the library is loaded with and without masks, and the set is the
//! one place among its variables that obeys every mask to the bit. Addresses, which differ from process to process, do not.

use crate::mask::Architecture;
use crate::memory::Part;
use duel_model::LensTreatment;

/// A mask and what it makes of the set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    /// The value of the architecture's variable.
    pub(crate) mask: &'static str,
    effect: Effect,
}

#[derive(Debug, Clone, Copy)]
enum Effect {
    /// These bits are cleared, and no other.
    Clears([u32; 4]),
    /// The set becomes this.
    Becomes(u32),
}

/// The set in a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where it is, relative to where the library is loaded, bytes.
    pub(crate) offset: u64,
    /// What it holds without a mask.
    pub(crate) whole: Vec<u32>,
}

/// The masks under which a library is loaded to find its set: two, so that what obeys both cannot do so by chance.
pub(crate) fn trials(architecture: Architecture) -> [Trial; 2] {
    match architecture {
        // AES-NI and PCLMULQDQ in the second word, VAES and VPCLMULQDQ in the fourth; then SSSE3 and AVX2. A CPU with
        // AES-NI has SSSE3, so it tells both.
        Architecture::X86 => [
            Trial {
                mask: architecture.mask(LensTreatment::AesMasked).unwrap_or_default(),
                effect: Effect::Clears([0, 0x0200_0002, 0, 0x0000_0600]),
            },
            Trial { mask: "~0x20000000000:~0x20", effect: Effect::Clears([0, 0x0000_0200, 0x0000_0020, 0]) },
        ],
        // There a mask is the set.
        Architecture::Arm => {
            [Trial { mask: "0", effect: Effect::Becomes(0) }, Trial { mask: "1", effect: Effect::Becomes(1) }]
        }
    }
}

/// Words of the set, of 32 bits: those that all versions of OpenSSL since 1.0.2 have.
pub(crate) fn words(architecture: Architecture) -> usize {
    match architecture {
        Architecture::X86 => 4,
        Architecture::Arm => 1,
    }
}

/// Finds the set from a library's variables without a mask, and under each of [`trials`].
///
/// # Errors
///
/// One sentence, where there is no such place or more than one.
pub(crate) fn find(architecture: Architecture, whole: &[Part], masked: &[Vec<Part>; 2]) -> Result<Found, String> {
    let trials = trials(architecture);
    let bytes = 4 * words(architecture);
    let mut found = Vec::new();
    for (index, part) in whole.iter().enumerate() {
        let mut under = Vec::new();
        for parts in masked {
            match parts.get(index) {
                Some(same) if same.from == part.from && same.bytes.len() == part.bytes.len() => under.push(&same.bytes),
                _ => return Err("the library's variables do not have the same places each time".into()),
            }
        }
        for at in (0..part.bytes.len().saturating_sub(bytes - 1)).step_by(4) {
            let set = as_words(&part.bytes[at..at + bytes]);
            let obeys =
                |(trial, variables): (&Trial, &&Vec<u8>)| as_words(&variables[at..at + bytes]) == trial.of(&set);
            if trials.iter().all(|trial| trial.of(&set) != set) && trials.iter().zip(&under).all(obeys) {
                found.push(Found { offset: part.from + at as u64, whole: set });
            }
        }
    }
    match found.len() {
        1 => found.pop().ok_or_else(String::new),
        0 => Err("nothing in this library obeys masks as a set of CPU features does: it was built without assembly, or is of \
                  another kind, or the CPU has nothing to mask"
            .into()),
        several => Err(format!("{several} places in this library obey the masks as a set of CPU features does")),
    }
}

/// As the CPU stores them.
pub(crate) fn as_words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect()
}

impl Trial {
    fn of(self, set: &[u32]) -> Vec<u32> {
        match self.effect {
            Effect::Clears(bits) => set.iter().zip(bits).map(|(word, bits)| word & !bits).collect(),
            Effect::Becomes(word) => vec![word],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHOLE: [u32; 4] = [0x4f8b_ffff, 0xfffa_3203, 0xf1bf_27eb, 0x1b41_5fde];
    const UNDER: [[u32; 4]; 2] =
        [[0x4f8b_ffff, 0xfdfa_3201, 0xf1bf_27eb, 0x1b41_59de], [0x4f8b_ffff, 0xfffa_3003, 0xf1bf_27cb, 0x1b41_5fde]];

    fn part(from: u64, words: &[&[u32]]) -> Part {
        Part { from, bytes: words.iter().flat_map(|words| *words).flat_map(|word| word.to_ne_bytes()).collect() }
    }

    /// An address that is another one in each process, the set, and what is always the same.
    fn variables(address: u32, set: &[u32]) -> Vec<Part> {
        vec![part(0x100, &[&[7; 8]]), part(0x1000, &[&[address, 0x7f00], set, &[0; 9]])]
    }

    #[test]
    fn the_set_is_the_place_that_obeys_all_masks() {
        let under = [variables(0x2000, &UNDER[0]), variables(0x3000, &UNDER[1])];
        let found = find(Architecture::X86, &variables(0x1000, &WHOLE), &under);
        assert_eq!(found, Ok(Found { offset: 0x1008, whole: WHOLE.to_vec() }));
    }

    #[test]
    fn an_arm_s_set_becomes_the_mask() {
        let under = [variables(0x2000, &[0]), variables(0x3000, &[1])];
        let found = find(Architecture::Arm, &variables(0x1000, &[0x7d]), &under);
        assert_eq!(found, Ok(Found { offset: 0x1008, whole: vec![0x7d] }));
    }

    #[test]
    fn where_it_is_not_sure_it_is_not_found() {
        let why = |whole: &[Part], under: &[Vec<Part>; 2]| find(Architecture::X86, whole, under).unwrap_err();
        let same = variables(5, &WHOLE);
        assert!(why(&same, &[same.clone(), same.clone()]).contains("nothing in this library obeys"));
        let one = [variables(5, &UNDER[0]), variables(5, &UNDER[0])];
        assert!(why(&variables(5, &WHOLE), &one).contains("nothing in this library obeys"));
        let twice = |set: &[u32]| vec![part(0, &[set, set])];
        assert!(why(&twice(&WHOLE), &[twice(&UNDER[0]), twice(&UNDER[1])]).starts_with("2 places"));
        assert!(why(&variables(5, &WHOLE), &[vec![], vec![]]).contains("same places"));
    }

    proptest! {
        #[test]
        fn no_variables_make_it_stumble(
            whole in proptest::collection::vec(any::<u8>(), 0..40),
            under in proptest::collection::vec(any::<u8>(), 0..40),
            from in 0_u64..2,
        ) {
            let parts = |from, bytes: &[u8]| vec![Part { from, bytes: bytes.to_vec() }];
            for architecture in [Architecture::X86, Architecture::Arm] {
                let _ = find(architecture, &parts(0, &whole), &[parts(from, &under), parts(0, &whole)]);
            }
        }
    }
}
