//! `/proc/PID/status`: whose a process is, and what it may do.

/// What the kernel tells of a process's rights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Effective user and groups. The owner of `/proc/PID` is another where a process has changed its user, as web servers
    /// do. `None` where the kernel does not tell.
    pub user: Option<User>,
    /// Its real, effective and saved user and that of the file system are one, and its groups are.
    pub has_one_identity: bool,
    /// Bits of file modes that it leaves out.
    pub umask: Option<u32>,
    /// CPUs that it may run on, as the kernel lists them.
    pub cpus: Option<String>,
    /// Effective capabilities, one bit each; `None` where the kernel does not tell.
    pub effective_capabilities: Option<u64>,
    /// Capabilities that it or its children can ever have.
    pub bounding_capabilities: Option<u64>,
    /// Programs that it starts get no further rights.
    pub has_no_new_privileges: bool,
    /// Whether its system calls are restricted, and by how many filters: 0 by none; filters only come to it.
    pub system_call_filters: u64,
}

/// A user with its groups, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
}

impl Status {
    /// Understands the file. Never fails: what makes no sense is not told.
    pub fn parse(status: &[u8]) -> Self {
        let text = String::from_utf8_lossy(status);
        let number = |name: &str, radix: u32| u64::from_str_radix(field(&text, name)?, radix).ok();
        // Kernels before 5.10 tell the mode alone: 2 where there are filters.
        let filters = number("Seccomp_filters:", 10).or_else(|| number("Seccomp:", 10)).unwrap_or(0);
        Self {
            user: user(&text),
            has_one_identity: are_one(&text, "Uid:") && are_one(&text, "Gid:"),
            umask: number("Umask:", 8).and_then(|bits| u32::try_from(bits).ok()),
            cpus: field(&text, "Cpus_allowed_list:").filter(|list| is_cpu_list(list)).map(str::to_owned),
            effective_capabilities: number("CapEff:", 16),
            bounding_capabilities: number("CapBnd:", 16),
            has_no_new_privileges: number("NoNewPrivs:", 10).is_some_and(|set| set != 0),
            system_call_filters: filters.max(number("Seccomp:", 10).unwrap_or(0).min(1)),
        }
    }

    /// Whether it has the rights of root.
    pub fn is_root(&self) -> bool {
        self.user.as_ref().is_some_and(|user| user.uid == 0)
    }
}

fn user(status: &str) -> Option<User> {
    // Real, effective, saved, of the file system.
    let effective = |name: &str| field(status, name)?.split_whitespace().nth(1)?.parse().ok();
    let groups = field(status, "Groups:").unwrap_or_default();
    Some(User {
        uid: effective("Uid:")?,
        gid: effective("Gid:")?,
        groups: groups.split_whitespace().filter_map(|group| group.parse().ok()).collect(),
    })
}

/// Whether all four numbers behind a name are the same.
fn are_one(status: &str, name: &str) -> bool {
    let numbers: Vec<&str> = field(status, name).unwrap_or_default().split_whitespace().collect();
    numbers.len() == 4 && numbers.iter().all(|number| *number == numbers[0] && number.parse::<u32>().is_ok())
}

/// What stands behind a name at the beginning of a line. No process can make a line of its own: the kernel escapes line
/// ends in names.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn is_cpu_list(list: &str) -> bool {
    !list.is_empty() && list.bytes().all(|byte| byte.is_ascii_digit() || byte == b',' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_status_tells() {
        let status = Status::parse(
            b"Name:\tx\nUmask:\t0027\nUid:\t0\t33\t33\t33\nGid:\t0\t34\t34\t34\nGroups:\t34 5 \n\
              CapEff:\t0000000000000400\nCapBnd:\t000001ffffffffff\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n\
              Cpus_allowed_list:\t0-1,3\n",
        );
        assert_eq!(status.user, Some(User { uid: 33, gid: 34, groups: vec![34, 5] }));
        assert_eq!((status.umask, status.cpus.as_deref()), (Some(0o27), Some("0-1,3")));
        assert_eq!((status.effective_capabilities, status.bounding_capabilities), (Some(0x400), Some(0x1ff_ffff_ffff)));
        assert!(status.has_no_new_privileges && !status.is_root() && !status.has_one_identity);
        assert!(Status::parse(b"Uid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\n").has_one_identity);
        assert!(!Status::parse(b"Uid:\t7\t7\t0\t7\nGid:\t8\t8\t8\t8\n").has_one_identity);
        assert_eq!(status.system_call_filters, 3);
        assert_eq!(Status::parse(b"Uid:\tx\nCpus_allowed_list:\t0;reboot\n"), Status::default());
        assert_eq!(Status::parse(b"Seccomp:\t2\n").system_call_filters, 2);
    }

    proptest! {
        #[test]
        fn no_status_makes_it_stumble(status in "(Uid:|Gid:|Groups:|Seccomp:|CapEff:|[0-9a-f\t -]|\n){0,32}") {
            let _ = Status::parse(status.as_bytes());
        }
    }
}
