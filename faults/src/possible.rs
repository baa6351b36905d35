//! What each server can be told. A setting that a server does not have would be passed over in silence, and a twin with a
//! fault would be one without.

use crate::injections::JAVA_OPTIONS;
use crate::twin::{Content, Front, Handler, Http, Key, Log, Server, Tls, Twin, Versions};

impl Twin {
    /// Whether its server can be all that the description asks for.
    ///
    /// # Errors
    ///
    /// The first thing that it cannot be, as a sentence.
    pub(crate) fn possible(&self) -> Result<(), String> {
        let all = [
            self.about_content(),
            self.about_http(),
            self.about_http2(),
            self.about_handler(),
            self.about_tls(),
            self.about_front(),
            self.about_environment(),
        ];
        let all = all.into_iter().flatten();
        match all.filter(|(asked, _)| *asked).map(|(_, what)| what).next() {
            None => Ok(()),
            Some(what) => Err(format!("{} {what}", self.server.name())),
        }
    }

    fn about_content(&self) -> Vec<(bool, &'static str)> {
        let is_path = matches!(self.content, Content::Path(_));
        let serves_paths = matches!(self.server, Server::Ruler | Server::HaproxyRuler | Server::Own);
        let is_many = matches!(self.content, Content::Files { .. });
        let serves_folders = matches!(self.server, Server::Nginx | Server::Apache | Server::Lighttpd);
        vec![(is_path && !serves_paths, "serves files"), (is_many && !serves_folders, "serves one file")]
    }

    fn about_http(&self) -> Vec<(bool, &'static str)> {
        let is = |servers: &[Server]| servers.contains(&self.server);
        let usual = Http::default();
        let http = &self.http;
        let proxied = is(&[Server::HaproxyNginx, Server::HaproxyRuler]);
        let own = is(&[Server::Own]);
        let counts = proxied || own || is(&[Server::NginxPhp, Server::Java]);
        let told_when = is(&[Server::Nginx, Server::NginxPhp, Server::Own, Server::Java]);
        vec![
            (http.at_a_time.is_some() && !counts, "does not count requests"),
            (http.asks_by_path && !is(&[Server::NginxPhp]), "asks nobody over a Unix socket"),
            (!http.keepalive && own, "never closes a connection by itself"),
            (
                http.backlog != usual.backlog && is(&[Server::Ruler, Server::Own]),
                "has a listen queue of its own choice",
            ),
            (http.gzip_level.is_some() && is(&[Server::Ruler, Server::Own]), "does not compress"),
            (
                (!http.sendfile || http.copy_bytes.is_some()) && !is(&[Server::Nginx, Server::Apache]),
                "is not told how to copy files",
            ),
            (http.limit_rate.is_some() && !is(&[Server::Nginx]), "does not limit the rate"),
            (http.per_address_per_s.is_some() && !is(&[Server::Nginx]), "does not limit clients"),
            (http.usual_client_at_a_time.is_some() && !proxied, "knows no usual client"),
            (http.padding_bytes > 0 && is(&[Server::Ruler, Server::Own]), "has header fields of its own choice"),
            (http.log != Log::Off && !is(&[Server::Nginx, Server::Apache, Server::NginxPhp]), "writes no access log"),
            (!http.nodelay && !told_when, "chooses when small writes leave"),
            (http.shared_lock && !own, "has no lock"),
        ]
    }

    fn about_http2(&self) -> Vec<(bool, &'static str)> {
        let http = &self.http;
        let is = |servers: &[Server]| servers.contains(&self.server);
        let proxied = is(&[Server::HaproxyNginx, Server::HaproxyRuler]);
        let framed = http.http2 && is(&[Server::Nginx, Server::NginxPhp]);
        vec![
            (http.http2 && !(self.tls.is_some() && self.server.knows_http2()), "does not speak HTTP/2"),
            (http.frame_bytes.is_some() && !framed, "chooses the size of frames"),
            (http.most_streams.is_some() && !http.http2, "has no streams without HTTP/2"),
            (http.most_streams.is_some() && is(&[Server::Lighttpd]), "chooses how many streams it takes"),
            (http.stream_window_bytes.is_some() && !(http.http2 && proxied), "chooses its windows"),
        ]
    }

    fn about_handler(&self) -> Vec<(bool, &'static str)> {
        let is = |servers: &[Server]| servers.contains(&self.server);
        let handler = self.http.handler;
        let burdened = handler != Handler::Plain;
        let coarse = matches!(handler, Handler::Locks { .. } | Handler::Limits { .. });
        let remembers = coarse || matches!(handler, Handler::SlowShare { .. });
        let applications = [Server::Own, Server::Node, Server::NginxPhp, Server::Java];
        vec![
            (burdened && !is(&applications), "is no application"),
            (coarse && is(&[Server::Node]), "has one thread and timers of a millisecond"),
            (remembers && is(&[Server::NginxPhp]), "keeps nothing from one request to the next"),
        ]
    }

    fn about_tls(&self) -> Vec<(bool, &'static str)> {
        let Some(tls) = &self.tls else { return Vec::new() };
        let is = |servers: &[Server]| servers.contains(&self.server);
        let ruler = is(&[Server::Ruler]);
        let usual = Tls::default();
        let chosen = tls.suites12.is_some() || (tls.suites13.is_some() && !ruler);
        let of_key = |key| tls.key == key;
        vec![
            (is(&[Server::Own]), "speaks no TLS"),
            (ruler && of_key(Key::Rsa3072), "has no key of 3072 bits"),
            (chosen && is(&[Server::Ruler, Server::Node, Server::Java]), "chooses its suites"),
            (ruler && tls.suites13.is_some() && tls.versions == Versions::Tls12, "chooses its suites of TLS 1.2"),
            (tls.groups.is_some() && ruler, "chooses its groups"),
            (tls.chain_bytes > usual.chain_bytes && ruler, "has a chain of its own making"),
            (
                tls.record_bytes.is_some()
                    && !is(&[Server::Nginx, Server::NginxPhp, Server::HaproxyNginx, Server::HaproxyRuler]),
                "chooses the size of records",
            ),
            (!tls.resumption && is(&[Server::Node, Server::Java]), "always resumes"),
        ]
    }

    /// What a front keeps from the client, which then meets the front's own.
    fn about_front(&self) -> Vec<(bool, &'static str)> {
        let usual = Http::default();
        let http = &self.http;
        let hides = matches!(self.front, Some(Front::Haproxy { .. } | Front::Nginx { .. }));
        let records = self.tls.as_ref().is_some_and(|tls| tls.record_bytes.is_some());
        vec![
            (hides && http.http2, "is behind a front that speaks HTTP/1.1 alone"),
            (hides && !http.keepalive, "is behind a front that keeps connections"),
            (hides && records, "is behind a front with records of its own"),
            (self.front.is_some() && http.backlog != usual.backlog, "is behind a front with a listen queue of its own"),
            (self.front.is_some() && http.per_address_per_s.is_some(), "is behind a front that is its only client"),
        ]
    }

    fn about_environment(&self) -> Vec<(bool, &'static str)> {
        let tells = |name: &str| self.process.env.iter().any(|(known, _)| known == name);
        let java = self.server == Server::Java;
        let openssl = tells("OPENSSL_ia32cap") || tells("LD_LIBRARY_PATH");
        vec![(openssl && java, "has cryptography of its own"), (tells(JAVA_OPTIONS) && !java, "is not written in Java")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_is_not_told_is_refused_and_what_it_is_told_is_not() {
        let refused = |server: Server, change: fn(&mut Twin)| {
            let mut twin = Twin::healthy(server);
            change(&mut twin);
            twin.possible().err()
        };
        let tls: fn(&mut Twin) = |twin| twin.tls = Some(Tls::default());
        let groups: fn(&mut Twin) = |twin| twin.tls = Some(Tls { groups: Some("secp384r1"), ..Tls::default() });
        let handler: fn(&mut Twin) = |twin| twin.http.handler = Handler::Burns { us: 5 };
        assert_eq!(refused(Server::Own, tls).as_deref(), Some("own speaks no TLS"));
        assert_eq!(refused(Server::Ruler, tls), None);
        assert!(refused(Server::Ruler, groups).is_some());
        assert_eq!(refused(Server::Apache, groups), None);
        assert!(refused(Server::Nginx, handler).is_some());
        assert_eq!(refused(Server::Own, handler), None);
        for server in [Server::NginxPhp, Server::Java] {
            assert_eq!(refused(server, handler), None);
        }
        let counts: fn(&mut Twin) = |twin| twin.http.handler = Handler::SlowShare { every: 5, us: 5 };
        assert!(refused(Server::NginxPhp, counts).is_some());
        assert_eq!(refused(Server::Java, counts), None);
        let masked: fn(&mut Twin) = |twin| twin.process.env = vec![("OPENSSL_ia32cap".to_owned(), ":0".to_owned())];
        assert!(refused(Server::Java, masked).is_some());
        assert_eq!(refused(Server::Lighttpd, masked), None);
    }

    #[test]
    fn http2_is_spoken_over_tls_by_those_who_know_it_and_by_no_front() {
        let speaks = |server: Server, change: fn(&mut Twin)| {
            let mut twin = Twin::healthy(server);
            twin.tls = Some(Tls::default());
            twin.http.http2 = true;
            change(&mut twin);
            twin.possible().is_ok()
        };
        for server in [Server::Nginx, Server::Apache, Server::HaproxyNginx, Server::Lighttpd, Server::NginxPhp] {
            assert!(speaks(server, |_| {}), "{}", server.name());
            assert!(!speaks(server, |twin| twin.tls = None), "{}", server.name());
            assert!(!speaks(server, |twin| twin.front = Some(Front::Nginx { keeps: true })), "{}", server.name());
        }
        for server in [Server::Ruler, Server::Own, Server::Node, Server::Java] {
            assert!(!speaks(server, |_| {}), "{}", server.name());
        }
        let few: fn(&mut Twin) = |twin| twin.http.most_streams = Some(3);
        let tiny: fn(&mut Twin) = |twin| twin.http.frame_bytes = Some(16);
        assert!(speaks(Server::Apache, few) && !speaks(Server::Lighttpd, few));
        assert!(speaks(Server::Nginx, tiny) && !speaks(Server::HaproxyNginx, tiny));
    }

    #[test]
    fn what_a_front_would_hide_is_refused() {
        let refused = |change: fn(&mut Twin)| {
            let mut twin = Twin::healthy(Server::Nginx);
            twin.front = Some(Front::Haproxy { keeps: true });
            change(&mut twin);
            twin.possible().is_err()
        };
        assert!(!refused(|_| {}) && !refused(|twin| twin.http.gzip_level = Some(5)));
        assert!(refused(|twin| twin.http.keepalive = false));
        assert!(refused(|twin| twin.http.backlog = 2));
        assert!(refused(|twin| twin.http.per_address_per_s = Some(50)));
    }

    #[test]
    fn every_case_made_by_hand_is_possible() {
        for mut case in crate::injections::cases() {
            let Some(pair) = case.trial.pair_mut::<crate::kinds::web::Web>() else { continue };
            for twin in [&pair.healthy, &pair.faulty] {
                assert_eq!(twin.possible(), Ok(()), "{}", case.id);
            }
        }
    }
}
