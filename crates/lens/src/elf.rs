//! The head of an ELF file: is it a library for this machine? The loader's own words for that are not for people.

/// Bytes that [`fault`] needs to see.
pub(crate) const HEAD_BYTES: usize = 20;

/// What is wrong with a file that begins like this, to be read after its name; `None` where it may be loaded.
///
/// `class` is 1 for 32 and 2 for 64 bits, `machine` the number of this program's own architecture in ELF (`e_machine`).
pub(crate) fn fault(head: &[u8], class: u8, machine: Option<u16>) -> Option<String> {
    if !head.starts_with(b"\x7fELF") {
        return Some("is not a library: it has no ELF head".into());
    }
    let (Some(&its_class), Some(&order), Some(&kind), Some(&number)) = (
        head.get(4),
        head.get(5),
        head.get(16..18).and_then(|b| b.first_chunk::<2>()),
        head.get(18..20).and_then(|b| b.first_chunk::<2>()),
    ) else {
        return Some("is not a library: it ends within its ELF head".into());
    };
    let read = |bytes| if order == 2 { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) };
    // ET_DYN.
    if read(kind) != 3 {
        return Some("is not a shared library, but another kind of ELF file".into());
    }
    let number = read(number);
    if machine.is_some_and(|machine| machine != number) {
        let name = name(number).map_or_else(|| format!("machine {number}"), str::to_owned);
        return Some(format!("is a library for another kind of CPU ({name}), so this duel cannot load it"));
    }
    if its_class != class {
        let bits = if its_class == 1 { 32 } else { 64 };
        return Some(format!("is a library of {bits} bits, so this duel cannot load it"));
    }
    None
}

/// This program's class and machine.
pub(crate) fn here() -> (u8, Option<u16>) {
    let class = if cfg!(target_pointer_width = "64") { 2 } else { 1 };
    let machine = MACHINES.iter().find(|(_, _, arch)| *arch == std::env::consts::ARCH).map(|(number, ..)| *number);
    (class, machine)
}

/// Numbers of the ELF specification, its name for people and Rust's name.
const MACHINES: [(u16, &str, &str); 8] = [
    (3, "x86", "x86"),
    (62, "x86-64", "x86_64"),
    (40, "Arm, 32 bits", "arm"),
    (183, "Arm, 64 bits", "aarch64"),
    (243, "RISC-V", "riscv64"),
    (21, "PowerPC, 64 bits", "powerpc64"),
    (22, "S/390", "s390x"),
    (258, "LoongArch", "loongarch64"),
];

fn name(number: u16) -> Option<&'static str> {
    MACHINES.iter().find(|(known, ..)| *known == number).map(|(_, name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(class: u8, kind: u16, machine: u16) -> Vec<u8> {
        let mut head = b"\x7fELF".to_vec();
        head.extend([class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        head.extend(kind.to_le_bytes());
        head.extend(machine.to_le_bytes());
        head
    }

    #[test]
    fn what_the_loader_would_refuse_is_told_in_words() {
        assert_eq!(fault(&head(2, 3, 62), 2, Some(62)), None);
        for (bytes, word) in [
            (b"#!/bin/sh\n".to_vec(), "no ELF head"),
            (b"\x7fELF\x02".to_vec(), "ends within"),
            (head(2, 2, 62), "another kind of ELF file"),
            (head(2, 3, 183), "Arm, 64 bits"),
            (head(2, 3, 4711), "machine 4711"),
            (head(1, 3, 62), "32 bits"),
        ] {
            let said = fault(&bytes, 2, Some(62)).unwrap();
            assert!(said.contains(word), "{said}");
        }
    }

    proptest! {
        #[test]
        fn no_head_makes_it_stumble(bytes in proptest::collection::vec(any::<u8>(), 0..40), elf in any::<bool>()) {
            let mut head = if elf { b"\x7fELF".to_vec() } else { Vec::new() };
            head.extend(bytes);
            let _ = fault(&head, 2, Some(62));
        }
    }
}
