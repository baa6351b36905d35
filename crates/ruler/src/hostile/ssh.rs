//! Machines behind ssh that lie: what stands there in place of a shell, as text for `/bin/sh`.
//!
//! The client sends a script to a shell there. Its first line sets `M` to the word that frames its answers, so that a liar
//! which reads it can lie in the right frame.

use super::Expected;

/// One machine that lies.
#[derive(Clone, Copy, Debug)]
pub struct SshLie {
    /// `ssh/what-it-does`, unique.
    pub name: &'static str,
    /// What it does, in words.
    pub does: &'static str,
    /// Where it stands.
    pub place: Place,
    /// What is run.
    pub script: &'static str,
    /// How a client has to take it.
    pub expected: Expected,
}

/// Where the script of a lie stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In place of the program `ssh` here.
    Client,
    /// In place of the command on the other machine.
    Command,
}

macro_rules! lie {
    ($place:ident, $name:literal, $does:literal, $expected:ident, $script:literal) => {
        SshLie {
            name: concat!("ssh/", $name),
            does: $does,
            place: Place::$place,
            script: $script,
            expected: Expected::$expected,
        }
    };
}

/// All of them. A flood is one of 300 MB, which whoever keeps it cannot hide, and does not take the machine's time for half a
/// minute; what is silent ends with its input, so that nothing is left behind.
pub const LIES: &[SshLie] = &[
    lie!(
        Client,
        "client-fails",
        "ssh ends at once with an error full of escape sequences",
        Doubt,
        r"printf 'ssh: \033[2J\033]0;owned\007\nno\r\nway\n' >&2; exit 255"
    ),
    lie!(Client, "client-says-nothing", "ssh ends at once and says nothing", Doubt, "exit 255"),
    lie!(Client, "client-claims-success", "ssh ends at once and says that all is well", Doubt, "exit 0"),
    lie!(
        Client,
        "client-complains-at-length",
        "ssh complains of 50 MB, and ends",
        Doubt,
        "head -c 50000000 /dev/zero | tr '\\0' x >&2; exit 255"
    ),
    lie!(Command, "closes-at-once", "the end in place of a shell", Doubt, "exit 0"),
    lie!(
        Command,
        "fails-with-escapes",
        "an error full of escape sequences in place of a shell",
        Doubt,
        r"printf '\033[2J\033]0;owned\007This account is closed.\r\n' >&2; exit 1"
    ),
    lie!(
        Command,
        "greets-at-length",
        "a greeting of 300 MB, and no frame",
        Doubt,
        "yes 'Welcome to this machine' | head -c 300000000; exec cat >/dev/null"
    ),
    lie!(
        Command,
        "says-zeros",
        "300 MB of zeros, and no line",
        Doubt,
        "head -c 300000000 /dev/zero; exec cat >/dev/null"
    ),
    lie!(
        Command,
        "complains-at-length",
        "300 MB of complaints",
        Doubt,
        "yes 'terrible' | head -c 300000000 >&2; exec cat >/dev/null"
    ),
    lie!(Command, "echoes", "the script comes back", Doubt, "exec cat"),
    lie!(
        Command,
        "frames-of-another",
        "frames of a word that it guesses",
        Doubt,
        "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); echo \
     'duel-00000000000000000000000000000000 + cpuinfo'; echo 'model name : x'; echo \
     'duel-00000000000000000000000000000000 - cpuinfo 0'; done; exec cat >/dev/null"
    ),
    lie!(
        Command,
        "frames-without-end",
        "frames of the right word, without end",
        Doubt,
        r#"read line; eval "$line"; n=0; while :; do n=$((n+1)); echo "$M + x$n"; echo "$M - x$n 0"; done"#
    ),
    lie!(
        Command,
        "frame-that-never-ends",
        "a frame of the right word that never ends",
        Doubt,
        r#"read line; eval "$line"; echo "$M + cpuinfo"; yes 'model name : made in memory' | head -c 300000000; exec cat >/dev/null"#
    ),
    lie!(
        Command,
        "frame-of-escapes",
        "facts full of escape sequences, and then the end",
        Doubt,
        r#"read line; eval "$line"; for f in uname cpuinfo meminfo os-release boot sample; do echo "$M + $f"; printf 'PRETTY_NAME="\033[2J\033]0;owned\007x"\nmodel name\t: \033[31mx\302\2332J\n\033[2J\n'; echo "$M - $f 0"; done; exit 0"#
    ),
    lie!(
        Command,
        "facts-of-huge-numbers",
        "the right answers, with all their numbers beyond 64 bits",
        Either,
        r#"exec sh -s | sed -u -e "/^duel-/!s/[0-9]\{5,\}/99999999999999999999999999/g""#
    ),
    lie!(
        Command,
        "facts-below-zero",
        "the right answers, with all their numbers below zero",
        Either,
        r#"exec sh -s | sed -u -e "/^duel-/!s/\([ \t=:]\)\([0-9][0-9]*\)/\1-\2/g""#
    ),
    lie!(
        Command,
        "facts-of-escapes",
        "the right answers, with an escape sequence in each of their lines",
        Either,
        r#"e=$(printf '\033[2J\302\2331m\007'); exec sh -s | sed -u -e "/^duel-/!s/\([a-z]\)\([a-z]\)/\1$e\2/""#
    ),
    lie!(Command, "facts-doubled", "each line of the right answers twice", Either, "exec sh -s | sed -u -e p"),
    lie!(
        Command,
        "ends-after-the-facts",
        "the right facts, and then the end at the first question",
        Doubt,
        r#"exec sh -s | sed -u -e "/- ready/q""#
    ),
    lie!(
        Command,
        "silent-after-the-facts",
        "the right facts, and then silence",
        Doubt,
        r#"sh -s | sed -u -e "/- ready/q"; exec cat >/dev/null"#
    ),
];
