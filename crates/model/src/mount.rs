//! What Linux tells of mounts.

/// A line of `/proc/PID/mountinfo`: `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE SUPER-OPTIONS`. Its fields are as
/// they stand there: blanks in paths are written as octal numbers, and who makes mounts chooses much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountLine<'a> {
    /// The mount's number.
    pub id: u64,
    /// `MAJOR:MINOR` of what is mounted; of some file systems a number of their own.
    pub device: &'a str,
    /// What of the file system is mounted.
    pub root: &'a str,
    /// Where.
    pub point: &'a str,
    /// Options of the mount, with commas between them.
    pub options: &'a str,
    /// The type of the file system.
    pub file_system: &'a str,
    /// What it was made of, in its own words: a device, or anything else.
    pub source: &'a str,
    /// Options of the file system, whichever way it is reached.
    pub super_options: &'a str,
}

impl<'a> MountLine<'a> {
    /// `None` where a line is none of these.
    pub fn of(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let (mut left, mut right) = (left.split(' '), right.split(' '));
        Some(Self {
            id: left.next()?.parse().ok()?,
            device: left.nth(1)?,
            root: left.next()?,
            point: left.next()?,
            options: left.next()?,
            file_system: right.next()?,
            source: right.next()?,
            super_options: right.next().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read_with_and_without_optional_fields() {
        for optional in ["", "shared:1 master:2 "] {
            let line = format!("36 35 98:0 /mnt1 /mnt\\0402 rw,noatime {optional}- ext4 /dev/root rw,errors=continue");
            let expected = MountLine {
                id: 36,
                device: "98:0",
                root: "/mnt1",
                point: "/mnt\\0402",
                options: "rw,noatime",
                file_system: "ext4",
                source: "/dev/root",
                super_options: "rw,errors=continue",
            };
            assert_eq!(MountLine::of(&line), Some(expected));
        }
    }

    #[test]
    fn what_is_no_such_line_is_none() {
        for strange in [
            "",
            " - ",
            "- cgroup2 x y",
            "29 - x",
            "x y z - a",
            "x 1 2:3 / /m rw - ext4 /dev/x rw",
            "1 2 3:4 / /m rw",
            "1 2 3:4 / /m rw - cgroup",
        ] {
            assert_eq!(MountLine::of(strange), None, "{strange}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken(line in "[-0-9a-z/:, \\PC]{0,80}") {
            if let Some(mount) = MountLine::of(&line) {
                prop_assert!(line.contains(mount.point) && line.contains(mount.source), "{mount:?}");
            }
        }
    }
}
