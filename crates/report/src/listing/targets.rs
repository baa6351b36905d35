//! The targets of a run in little room: what they have in common gives way first, then the middle of paths. Names, hosts and ports, by
//! which one run is told from another, are told as long as there is room for them in three lines, and so are schemes and users where
//! targets differ in nothing else. Of more targets than that it is told how many there are.

use crate::text::{columns, cut_middle};
use std::collections::BTreeSet;

/// Most lines for the targets of one run.
const MOST_LINES: usize = 3;
/// What of a path is left at least where there is no host that says more.
const LEAST_OF_PATH: usize = 24;

/// The targets in lines of so many columns; of more than fit, how many there are besides. The texts are safe to show.
pub(super) fn lines(targets: &[String], room: usize) -> Vec<String> {
    let parts = distinct(targets.iter().map(|target| Parts::of(target)).collect());
    one_line(targets, &parts, room).map_or_else(|| several_lines(&parts, room), |line| vec![line])
}

/// Says of each target whether its scheme and its user have to stay, since without them two targets would read as one.
fn distinct(mut parts: Vec<Parts<'_>>) -> Vec<Parts<'_>> {
    let count = |parts: &[Parts<'_>]| {
        let told = parts.iter().map(|part| Parts { name: "", ..part.plain().bare() }.told());
        told.collect::<BTreeSet<_>>().len()
    };
    let keep = |parts: &mut [Parts<'_>], scheme: bool, user: bool| {
        parts.iter_mut().for_each(|part| (part.keeps_scheme, part.keeps_user) = (scheme, user));
    };
    keep(&mut parts, true, true);
    let whole = count(&parts);
    for (scheme, user) in [(false, false), (true, false), (false, true), (true, true)] {
        keep(&mut parts, scheme, user);
        if count(&parts) == whole {
            break;
        }
    }
    parts
}

/// All of them in one line, whole or shortened.
fn one_line(targets: &[String], parts: &[Parts<'_>], room: usize) -> Option<String> {
    let fits = |told: Vec<String>| Some(told.join(", ")).filter(|line| columns(line) <= room);
    let each = |tell: fn(&Parts<'_>) -> String| parts.iter().map(tell).collect::<Vec<_>>();
    fits(targets.to_vec())
        .or_else(|| fits(each(|part| part.plain().told())))
        .or_else(|| fits(beside_the_first(parts).iter().map(Parts::told).collect()))
        .or_else(|| fits(bare(parts).iter().map(Parts::told).collect()))
        .or_else(|| capped(&bare(parts), room))
}

/// Targets after the first without what the first one has told of them.
fn beside_the_first<'a>(parts: &[Parts<'a>]) -> Vec<Parts<'a>> {
    let Some(first) = parts.first().map(Parts::plain) else { return Vec::new() };
    let is_one_scheme = parts.iter().all(|part| part.scheme == parts[0].scheme);
    let others = parts[1..].iter().map(|part| part.plain().beside(&first, is_one_scheme));
    std::iter::once(first.clone()).chain(others).collect()
}

/// The same without schemes and users that need not stay.
fn bare<'a>(parts: &[Parts<'a>]) -> Vec<Parts<'a>> {
    beside_the_first(parts).iter().map(Parts::bare).collect()
}

/// Their paths cut in the middle to what there is room for.
fn capped(parts: &[Parts<'_>], room: usize) -> Option<String> {
    let longest = parts.iter().map(|part| columns(part.path)).max().unwrap_or(0);
    let line = |cap: usize| parts.iter().map(|part| part.with_path_of(cap)).collect::<Vec<_>>().join(", ");
    (1..longest).rev().map(line).find(|line| columns(line) <= room)
}

fn several_lines(parts: &[Parts<'_>], room: usize) -> Vec<String> {
    let told = |parts: Vec<Parts<'_>>| parts.iter().map(|part| part.within(room.saturating_sub(1))).collect::<Vec<_>>();
    let whole = filled(&told(parts.iter().map(Parts::plain).collect()), room);
    if whole.len() <= MOST_LINES {
        return whole;
    }
    let short = told(bare(parts));
    let all = filled(&short, room);
    if all.len() <= MOST_LINES {
        return all;
    }
    let some = (1..short.len()).rev().map(|shown| {
        let more = format!("and {} more", short.len() - shown);
        filled(&[&short[..shown], &[more]].concat(), room)
    });
    some.into_iter().find(|lines| lines.len() <= MOST_LINES).unwrap_or_else(|| all[..1].to_vec())
}

/// Texts one behind the other, as many as fit into each line.
fn filled(texts: &[String], room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        match lines.last_mut() {
            // A comma may have to follow.
            Some(line) if columns(line) + 2 + columns(text) < room => *line += &format!(", {text}"),
            Some(line) => {
                line.push(',');
                lines.push(text.clone());
            }
            None => lines.push(text.clone()),
        }
    }
    lines
}

/// A target in the parts that may be left out.
#[derive(Debug, Clone)]
struct Parts<'a> {
    /// With its `=`; empty where none was given.
    name: &'a str,
    /// With its `://`; empty of paths and the like.
    scheme: &'a str,
    /// With the user, without the port.
    host: &'a str,
    /// With its colon.
    port: &'a str,
    /// What follows; of targets without a host all of it.
    path: &'a str,
    /// Whether something stands before it that the first target has as well.
    is_continued: bool,
    /// Whether the scheme stays in little room: see [`distinct`]. The same of the user.
    keeps_scheme: bool,
    keeps_user: bool,
}

impl<'a> Parts<'a> {
    fn of(target: &'a str) -> Self {
        let (name, address) = match target.find('=') {
            Some(at) if at > 0 && !target[..at].contains(['/', ':', '?']) => target.split_at(at + 1),
            _ => ("", target),
        };
        let (is_continued, keeps_scheme, keeps_user) = (false, false, false);
        let Some(at) = address.find("://") else {
            let (scheme, host, port, path) = ("", "", "", address);
            return Self { name, scheme, host, port, path, is_continued, keeps_scheme, keeps_user };
        };
        let (scheme, after) = address.split_at(at + 3);
        let (place, path) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
        let is_port = |at: &usize| place[at + 1..].bytes().all(|b| b.is_ascii_digit());
        let (host, port) = place.split_at(place.rfind(':').filter(is_port).unwrap_or(place.len()));
        Self { name, scheme, host, port, path, is_continued, keeps_scheme, keeps_user }
    }

    /// Without what says nothing: `http://` and the path of a site's first page.
    fn plain(&self) -> Self {
        let is_web = self.scheme.starts_with("http");
        let scheme = if self.scheme == "http://" { "" } else { self.scheme };
        let path = if is_web && self.path == "/" { "" } else { self.path };
        Self { scheme, path, ..self.clone() }
    }

    /// Without what the first target has as well.
    fn beside(&self, first: &Self, is_one_scheme: bool) -> Self {
        let mut beside = self.clone();
        if self.host.is_empty() {
            let common = self.path.bytes().zip(first.path.bytes()).take_while(|(own, other)| own == other).count();
            let shared = self.path.as_bytes()[..common].iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            // A sign stands in its place.
            if first.host.is_empty() && shared > 1 {
                (beside.path, beside.is_continued) = (&self.path[shared..], true);
            }
            return beside;
        }
        // Of targets with several schemes one without would not say which it has.
        if is_one_scheme {
            beside.scheme = "";
        }
        // `http://` is not told: without its host, too, such a target would seem to have the first one's scheme.
        let is_told_apart = is_one_scheme || !self.scheme.is_empty() || first.scheme.is_empty();
        let has_more = !(self.port.is_empty() && self.path.is_empty());
        if self.host == first.host && columns(self.host) > 1 && has_more && is_told_apart {
            (beside.host, beside.is_continued) = ("", true);
        }
        beside
    }

    fn told(&self) -> String {
        self.with(self.path)
    }

    fn with(&self, path: &str) -> String {
        let Self { name, scheme, host, port, .. } = self;
        format!("{name}{scheme}{}{host}{port}{path}", if self.is_continued { "…" } else { "" })
    }

    /// With a path of so many columns.
    fn with_path_of(&self, cap: usize) -> String {
        let is_path_alone = self.host.is_empty() && self.port.is_empty();
        self.with(&cut_middle(self.path, if is_path_alone { cap.max(LEAST_OF_PATH) } else { cap }))
    }

    /// Without scheme and user, unless they have to stay.
    fn bare(&self) -> Self {
        let scheme = if self.keeps_scheme { self.scheme } else { "" };
        let host = self.host.rsplit_once('@').filter(|_| !self.keeps_user).map_or(self.host, |(_, host)| host);
        Self { scheme, host, ..self.clone() }
    }

    /// In so many columns whatever it takes: scheme and user give way first, then the path, then the host, at last any of it.
    fn within(&self, room: usize) -> String {
        let bare = self.bare();
        let told = if columns(&self.told()) <= room { self.told() } else { bare.told() };
        if columns(&told) <= room {
            return told;
        }
        let left = room.saturating_sub(columns(&told) - columns(bare.path));
        let path = cut_middle(bare.path, left.max(1));
        if columns(&bare.with(&path)) <= room {
            return bare.with(&path);
        }
        let Self { name, scheme, host, port, .. } = bare;
        let path = if path.is_empty() { "" } else { "…" };
        let left = room.saturating_sub(columns(name) + columns(scheme) + columns(port) + columns(path));
        cut_middle(&format!("{name}{scheme}{}{port}{path}", cut_middle(host, left)), room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(targets: &[&str], room: usize) -> Vec<String> {
        lines(&targets.iter().map(|&target| target.to_owned()).collect::<Vec<_>>(), room)
    }

    #[test]
    fn names_hosts_and_ports_are_told_as_long_as_there_is_room() {
        let two = ["old=http://127.0.0.1:18081/files/large.bin", "new=http://127.0.0.1:18082/files/large.bin"];
        assert_eq!(told(&two, 90), [two.join(", ")]);
        assert_eq!(told(&two, 74), ["old=127.0.0.1:18081/files/large.bin, new=127.0.0.1:18082/files/large.bin"]);
        assert_eq!(told(&two, 70), ["old=127.0.0.1:18081/files/large.bin, new=…:18082/files/large.bin"]);
        assert_eq!(told(&two, 50), ["old=127.0.0.1:18081/fil….bin, new=…:18082/fil….bin"]);
        assert_eq!(told(&two, 36), ["old=127.0.0.1:18081/…, new=…:18082/…"]);
        assert_eq!(told(&two, 28), ["old=127.0.0.1:18081/fil…bin,", "new=127.0.0.1:18082/fil…bin"]);
        for room in 20..90 {
            let text = told(&two, room).join(" ");
            assert!(["old=", "new=", ":18081", ":18082"].iter().all(|part| text.contains(part)), "{room}: {text}");
        }
    }

    #[test]
    fn schemes_and_users_give_way_before_hosts() {
        let two = ["postgres://u@db1.example/shop", "postgres://u@db2.example/shop"];
        assert_eq!(told(&two, 50), ["postgres://u@db1.example/shop, u@db2.example/shop"]);
        assert_eq!(told(&two, 40), ["db1.example/shop, db2.example/shop"]);
        let named = ["one=postgres://u@127.0.0.1:15431/shop", "two=postgres://u@127.0.0.2:15432/shop"];
        assert_eq!(told(&named, 33), ["one=127.0.0.1:15431/shop,", "two=127.0.0.2:15432/shop"]);
    }

    #[test]
    fn what_alone_differs_between_targets_does_not_give_way() {
        for room in 14..60 {
            for two in [["old=http://h/", "new=https://h/"], ["old=https://h/", "new=http://h/"]] {
                let told = told(&two, room).join(" ");
                let is_whole = two.iter().all(|target| told.contains(target));
                let is_plain = told == two.map(|target| target.trim_end_matches('/').replace("http://", "")).join(", ");
                assert!(is_whole || is_plain, "{room}: {told}");
            }
            let users = told(&["postgres://ann@db/shop", "postgres://bob@db/shop"], room).join(" ");
            assert!(users.contains("ann@db") && users.contains("bob@db"), "{room}: {users}");
        }
        // A host that is left out would have the first one's scheme.
        assert_eq!(told(&["https://h.example/x", "http://h.example/x"], 37), ["https://h.example/x, h.example/x"]);
        let three = ["https://one.example/x", "http://two.example/x", "https://three.example/x"];
        assert_eq!(told(&three, 62), ["https://one.example/x, two.example/x, https://three.example/x"]);
        // Where hosts differ, too, they tell them apart in less room.
        assert_eq!(told(&["postgres://u@db1.example", "mysql://u@db2.example"], 26), ["db1.example, db2.example"]);
    }

    #[test]
    fn of_paths_the_ends_differ() {
        let two = ["sqlite:/srv/data/first/shop.db", "sqlite:/srv/data/second/shop.db"];
        assert_eq!(told(&two, 55), ["sqlite:/srv/data/first/shop.db, …/second/shop.db"]);
        assert_eq!(told(&two, 40), ["sqlite:/srv/data/first/shop.db,", "sqlite:/srv/data/second/shop.db"]);
        assert_eq!(told(&["/mnt/xfs", "/mnt/ext4"], 18), ["/mnt/xfs, …/ext4"]);
    }

    #[test]
    fn of_many_targets_it_is_told_how_many_more_there_are() {
        let many: Vec<String> = (0..40).map(|n| format!("http://10.0.0.{n}:8080/")).collect();
        let told = lines(&many, 33);
        assert_eq!(
            told,
            ["10.0.0.0:8080, 10.0.0.1:8080,", "10.0.0.2:8080, 10.0.0.3:8080,", "10.0.0.4:8080, and 35 more"]
        );
    }
}
