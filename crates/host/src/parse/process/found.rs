//! What the script tells of the search for the server: its section `server`.

use duel_model::ProcessIdentity;

/// Who was found to serve, and how.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::parse) struct Found<'a> {
    /// Processes whose parent is none of the server's, and these with all their descendants.
    pub(super) roots: Vec<&'a str>,
    pub(super) members: Vec<&'a str>,
    /// Processes of which one may be the server, and nobody can tell which: id and name.
    pub(super) strangers: Vec<(&'a str, &'a str)>,
    pub(super) arrival: Arrival,
    /// Whether one of them holds a socket on which connections arrive; `None`: not known.
    pub(super) serves: Option<bool>,
    boot: &'a str,
    started: &'a str,
    /// The user of the first socket that was found.
    pub(super) socket_user: Option<&'a str>,
    pub(super) reads_tables: bool,
    /// Who looked.
    pub(super) user: Option<&'a str>,
}

/// How the sockets were found on which connections to the server arrive.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// By the address and port that connections are made to.
    Address,
    /// By the port alone: the address is no address of the machine, so it is translated on the way.
    Translated,
    /// Not at all: connections are made on this machine and leave it.
    Elsewhere,
    /// By the port alone, because the address is not known.
    #[default]
    Port,
}

impl<'a> Found<'a> {
    pub(in crate::parse) fn of(text: &'a str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = rest.trim();
            let words = || rest.split_ascii_whitespace();
            match word {
                "roots" => found.roots = words().collect(),
                "members" => found.members = words().collect(),
                "stranger" => found.strangers.push(rest.split_once(' ').unwrap_or((rest, ""))),
                "arrival" => {
                    found.arrival = match rest {
                        "address" => Arrival::Address,
                        "translated" => Arrival::Translated,
                        "elsewhere" => Arrival::Elsewhere,
                        _ => Arrival::Port,
                    };
                }
                "serves" => found.serves = yes_or_no(rest),
                "boot" => found.boot = rest,
                "started" => found.started = rest,
                "socket" => found.socket_user = found.socket_user.or(words().nth(1)),
                "tables" => found.reads_tables = true,
                "user" => found.user = Some(rest),
                _ => {}
            }
        }
        found
    }

    /// The only root, if there is one alone.
    pub(in crate::parse) fn pid(&self) -> Option<u32> {
        match self.roots.as_slice() {
            [only] => only.parse().ok().filter(|&pid| pid > 0),
            _ => None,
        }
    }

    /// What tells the only root from another process that is given its id later.
    pub(in crate::parse) fn identity(&self) -> Option<ProcessIdentity> {
        self.pid()?;
        ProcessIdentity::new(self.boot, self.started)
    }

    /// The machine's boot; empty where it has no name.
    pub(super) fn boot(&self) -> &'a str {
        self.boot
    }

    /// When the only root was started, in the machine's own words.
    pub(super) fn started(&self) -> &'a str {
        self.started
    }

    /// Whether one of them holds a socket on which connections arrive; `None`: not known.
    pub(in crate::parse) fn serves(&self) -> Option<bool> {
        self.serves
    }
}

fn yes_or_no(word: &str) -> Option<bool> {
    match word {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_the_search() {
        let told = "roots 10\nmembers 10 11\narrival address\nserves yes\nboot 5f-a\nstarted 500\nsocket 7 33\nsocket 8 0\ntables tcp\nuser 0\n";
        let found = Found::of(told);
        assert_eq!((found.pid(), found.serves, found.arrival), (Some(10), Some(true), Arrival::Address));
        assert_eq!(found.identity(), ProcessIdentity::new("5f-a", "500"));
        assert_eq!((found.socket_user, found.user, found.reads_tables), (Some("33"), Some("0"), true));
        let several = Found::of("roots 10 20\nmembers 10 20\nboot b\nserves \nstranger 7 a b\nstranger");
        assert_eq!((several.pid(), several.identity(), several.serves), (None, None, None));
        assert_eq!(several.strangers, [("7", "a b"), ("", "")]);
        assert_eq!(Found::of("roots 0").pid(), None);
        assert_eq!(Found::of("roots 10\nboot \nstarted 5").identity(), None, "half of it tells nothing");
    }
}
