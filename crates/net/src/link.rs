//! The interface that a connection leaves this machine by, and what is known of it.

use duel_model::sanitize_line;
use std::net::IpAddr;
use std::path::Path;

/// An interface of this machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Link {
    /// Its name, safe to show.
    pub name: String,
    /// Its rate in Mbit/s, where the system knows it.
    pub mbps: Option<f64>,
    /// Tags that its frames carry, where that is known.
    pub tags: Option<u32>,
    /// It is this machine's loopback, which has no wire.
    pub is_loopback: bool,
}

impl Link {
    /// The interface that has this address. `is_here`: what `/sys` tells is of the network that the socket is in, which it is not
    /// in another namespace.
    pub(crate) fn of(local: IpAddr, is_here: bool) -> Option<Self> {
        #[cfg(target_os = "linux")]
        {
            let found = nix::ifaddrs::getifaddrs().ok()?.find(|interface| {
                interface.address.as_ref().is_some_and(|address| {
                    let v4 = address.as_sockaddr_in().map(|at| IpAddr::from(at.ip()));
                    let v6 = || address.as_sockaddr_in6().map(|at| IpAddr::from(at.ip()));
                    v4.or_else(v6) == Some(local)
                })
            })?;
            let is_loopback = found.flags.contains(nix::net::if_::InterfaceFlags::IFF_LOOPBACK);
            // What `/proc` tells is of the network that the asking thread is in.
            let (sys, proc) = (Path::new("/sys/class/net"), Path::new("/proc/thread-self/net"));
            let folder = if is_here { Folder::Sys(sys) } else { Folder::Proc(proc) };
            Some(Self::read(folder, &found.interface_name, is_loopback))
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (local, is_here, Path::new("/"));
            None
        }
    }

    fn read(folder: Folder<'_>, name: &str, is_loopback: bool) -> Self {
        let (mbps, tags) = match folder {
            Folder::Sys(folder) => {
                let read = |file: &str| std::fs::read_to_string(folder.join(name).join(file)).ok();
                // A link that is down, and one without a rate, say -1, or nothing. Those that are no device invent one.
                let mbps = read("speed").and_then(|text| text.trim().parse().ok()).filter(|&mbps| mbps > 0.0);
                let is_vlan = |text: String| text.lines().any(|line| line == "DEVTYPE=vlan");
                let tags = read("uevent").map(|text| u32::from(is_vlan(text)));
                (mbps.filter(|_| !is_loopback && has_device(folder, name, MOST_LAYERS)), tags)
            }
            Folder::Proc(folder) => (None, tags(folder, name)),
        };
        Self { name: sanitize_line(name), mbps, tags, is_loopback }
    }
}

/// Where the system tells of interfaces.
#[derive(Clone, Copy)]
enum Folder<'a> {
    /// A folder for each of them.
    Sys(&'a Path),
    /// Tables of all of them.
    Proc(&'a Path),
}

/// Interfaces on top of each other: more are none that anybody sets up.
const MOST_LAYERS: u32 = 4;

/// Whether it is a device, or stands on devices alone, as VLANs and bonds do: their rates are those of the devices.
fn has_device(folder: &Path, name: &str, layers: u32) -> bool {
    let own = folder.join(name);
    if own.join("device").exists() {
        return true;
    }
    let Ok(files) = std::fs::read_dir(own) else { return false };
    let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
    let lower: Vec<String> = names.filter_map(|name| Some(name.strip_prefix("lower_")?.to_owned())).collect();
    layers > 0 && !lower.is_empty() && lower.iter().all(|name| has_device(folder, name, layers - 1))
}

/// How many tags the frames of an interface carry, by the table of VLANs, which tells what each stands on.
fn tags(folder: &Path, name: &str) -> Option<u32> {
    let table = match std::fs::read_to_string(folder.join("vlan/config")) {
        Ok(table) => table,
        // Without the table there is no VLAN, if there are other tables.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.join("dev").exists() => return Some(0),
        Err(_) => return None,
    };
    let below = |name: &str| {
        table.lines().find_map(|line| {
            let mut columns = line.split('|').map(str::trim);
            let is_it = columns.next() == Some(name);
            columns.nth(1).filter(|_| is_it)
        })
    };
    let mut at = name;
    let mut tags = 0;
    while let Some(lower) = below(at).filter(|_| tags < MOST_LAYERS) {
        (at, tags) = (lower, tags + 1);
    }
    Some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_of_an_address_is_found() {
        let Some(link) = Link::of([127, 0, 0, 1].into(), true) else { return };
        assert!(link.is_loopback && link.mbps.is_none() && link.tags == Some(0), "{link:?}");
        assert_eq!(Link::of([192, 0, 2, 1].into(), true), None, "an address that no machine has");
    }

    /// A folder of the test's own, as the system has them.
    fn folder(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("duel-net-link-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = folder.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        folder
    }

    #[test]
    fn only_what_stands_on_devices_has_a_rate() {
        let folder = folder(
            "rates",
            &[
                ("eth0/speed", "25000\n"),
                ("eth0/device/vendor", ""),
                ("eth0/uevent", "INTERFACE=eth0\n"),
                ("vlan5/speed", "25000\n"),
                ("vlan5/lower_eth0/speed", ""),
                ("vlan5/uevent", "DEVTYPE=vlan\n"),
                ("veth1/speed", "10000\n"),
                ("veth1/uevent", "INTERFACE=veth1\n"),
                ("over/speed", "10000\n"),
                ("over/lower_veth1/speed", ""),
            ],
        );
        let known = |name| {
            let link = Link::read(Folder::Sys(&folder), name, false);
            (link.mbps, link.tags)
        };
        assert_eq!(known("eth0"), (Some(25_000.0), Some(0)));
        assert_eq!(known("vlan5"), (Some(25_000.0), Some(1)));
        assert_eq!(known("veth1"), (None, Some(0)));
        assert_eq!(known("over"), (None, None));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn tags_in_another_network_are_those_of_its_own_table() {
        let table = "VLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n\
                     eth0.5         | 5  | eth0\neth0.5.7       | 7  | eth0.5\nloop           | 1  | loop\n";
        let with = folder("with", &[("vlan/config", table)]);
        let without = folder("without", &[("dev", "")]);
        let known = |folder, name| Link::read(Folder::Proc(folder), name, false).tags;
        for (name, tags) in [("eth0", 0), ("eth0.5", 1), ("eth0.5.7", 2), ("loop", MOST_LAYERS)] {
            assert_eq!(known(&with, name), Some(tags), "{name}");
        }
        assert_eq!(known(&without, "eth0"), Some(0));
        assert_eq!(known(Path::new("/nowhere"), "eth0"), None);
        [with, without].iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
    }
}
