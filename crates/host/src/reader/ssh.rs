//! A shell on another machine, through the system's ssh: the user's config, keys, agent and jump hosts just work.

use crate::access::{Destination, Options};
use crate::error::HostError;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

/// A host that answers nothing for three times this long is gone: ssh's `ServerAliveCountMax` is 3.
const ALIVE_INTERVAL_S: u32 = 5;

/// What comes first holds, in ssh's configuration: nothing of the user's can undo this. Nobody is asked for anything, nothing is
/// forwarded or learnt, and no connection is left open behind us.
const SETTINGS: [&str; 16] = [
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    // One that the user holds open is used; none is left behind.
    "ControlMaster=no",
    "ForkAfterAuthentication=no",
    "ForwardAgent=no",
    "ForwardX11=no",
    // Errors tell why it failed; a banner tells nothing.
    "LogLevel=ERROR",
    "NumberOfPasswordPrompts=0",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "ServerAliveCountMax=3",
    "StdinNull=no",
    "StrictHostKeyChecking=yes",
    "Tunnel=no",
    "VisualHostKey=no",
];

/// An `ssh` that connects and starts the shell there.
pub(super) struct Call {
    pub(super) arguments: Vec<OsString>,
    /// What it reads its settings from; open for as long as it may read them.
    pub(super) settings: Option<File>,
}

/// How ssh is called.
///
/// # Errors
///
/// When a word of the shell's command would mean something to a login shell.
pub(super) fn call(destination: &Destination, options: &Options) -> Result<Call, HostError> {
    let mut settings: Vec<String> = SETTINGS.into_iter().map(str::to_owned).collect();
    settings.push(format!("ConnectTimeout={}", options.connect_timeout.as_secs().max(1)));
    settings.push(format!("ServerAliveInterval={ALIVE_INTERVAL_S}"));
    // It is started in another folder.
    let given = options.ssh_config.as_ref().map(|given| std::path::absolute(given).unwrap_or_else(|_| given.clone()));
    let mut arguments: Vec<OsString> = Vec::new();
    let file = in_a_file(&settings, given.as_deref());
    if let Some((_, path)) = &file {
        arguments.extend(["-F".into(), path.into()]);
    } else {
        // The command line comes before all files, but ssh hands it to no host on the way (`ProxyJump`).
        arguments.extend(settings.iter().flat_map(|setting| ["-o".into(), setting.into()]));
        arguments.extend(given.into_iter().flat_map(|given| ["-F".into(), given.into()]));
    }
    // The user's login shell, whatever it is, sees nothing but this; the script comes behind it.
    arguments.extend(["--".into(), destination.as_str().into(), options.remote_command()?.into()]);
    Ok(Call { arguments, settings: file.map(|(file, _)| file) })
}

/// A file of settings that holds for the hosts on the way too, for which ssh starts another ssh: ours first, then what the
/// user gave, or what ssh would have read without us. The file is in memory, and goes with us however we end. `None` where
/// there is no such thing, or the user's file has a name that ssh cannot include.
#[cfg(target_os = "linux")]
fn in_a_file(settings: &[String], given: Option<&Path>) -> Option<(File, String)> {
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::io::Write;
    let mut text: String = settings.iter().map(|setting| format!("{setting}\n")).collect();
    match given {
        Some(given) => {
            // What is not there would be included without a word.
            let given = given.canonicalize().ok()?;
            let given = given.to_str().filter(|given| !given.contains(['"', '\n', '*', '?', '[']))?;
            text.push_str(&format!("Include \"{given}\"\n"));
        }
        None => text.push_str("Include ~/.ssh/config\nInclude /etc/ssh/ssh_config\n"),
    }
    let mut file = File::from(memfd_create("ssh-settings", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(text.as_bytes()).ok()?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&file));
    Path::new(&path).exists().then_some((file, path))
}

#[cfg(not(target_os = "linux"))]
fn in_a_file(_: &[String], _: Option<&Path>) -> Option<(File, String)> {
    None
}

/// What ssh said, as one reason: "Permission denied (publickey)". The lines are safe to show.
pub(super) fn reason(said: &[String]) -> String {
    // ssh frames its warning of a changed key with lines of @; what remains is said in the order of the lines.
    let lines: Vec<&str> = said
        .iter()
        .map(|line| line.trim().trim_start_matches("ssh: "))
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .collect();
    let any = |text: &str| lines.iter().any(|line| line.contains(text));
    let changed = any("REMOTE HOST IDENTIFICATION HAS CHANGED");
    let told = if changed { "its host key has changed since it was last known".to_owned() } else { lines.join("; ") };
    let told = if told.is_empty() { "ssh said nothing".to_owned() } else { told };
    let by_hand = changed || any("Host key verification failed");
    format!("{told}{}", if by_hand { " (connect once with ssh by hand and check the key)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::HostAccess;

    fn destination(name: &str) -> Destination {
        match HostAccess::ssh(name).unwrap() {
            HostAccess::Ssh(destination) => destination,
            HostAccess::Local => unreachable!("it was made for ssh"),
        }
    }

    fn with_config(config: &Path) -> Options {
        Options { ssh_config: Some(config.to_owned()), ..Options::default() }
    }

    #[test]
    fn what_ssh_said_is_told_in_one_line() {
        let said = |lines: &[&str]| reason(&lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>());
        let told = said(&["@@@@@@", "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "@@@@", "long story"]);
        assert!(told.starts_with("its host key has changed") && told.contains("by hand"), "{told}");
        let told = said(&["No ED25519 host key is known", "Host key verification failed."]);
        assert!(told.starts_with("No ED25519") && told.contains("by hand"), "{told}");
        assert_eq!(
            said(&["ssh: connect to host h port 1: Connection refused"]),
            "connect to host h port 1: Connection refused"
        );
        assert_eq!(said(&[]), "ssh said nothing");
    }

    #[test]
    fn ssh_obeys_our_settings_before_the_users() {
        let folder = tempfile::tempdir().unwrap();
        let users = folder.path().join("users");
        std::fs::write(
            &users,
            "Host web1\n  HostName 192.0.2.7\n  ForwardAgent yes\n  RemoteCommand rm -rf /\n  ControlMaster auto\n  \
             ControlPersist yes\n  StrictHostKeyChecking no\n  BatchMode no\n",
        )
        .unwrap();
        let ours = call(&destination("web1"), &with_config(&users)).unwrap();
        // `-G` says how ssh understands its options, and connects to nothing.
        let Ok(output) = std::process::Command::new("ssh").arg("-G").args(&ours.arguments).output() else {
            println!("skipped ssh_obeys_our_settings_before_the_users: no ssh here");
            return;
        };
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for line in [
            "hostname 192.0.2.7",
            "batchmode yes",
            "forwardagent no",
            "forwardx11 no",
            "clearallforwardings yes",
            "controlmaster false",
            "stricthostkeychecking true",
            "requesttty false",
        ] {
            assert!(told.lines().any(|told| told == line), "{line}: {told}");
        }
        assert!(!told.contains("rm -rf"), "{told}");
    }
}
