//! What each server can be told. A setting that a server does not have would be passed over in silence, and a twin with a
//! fault would be one without.

use crate::twin::{Content, Handler, Http, Key, Log, Server, Tls, Twin, Versions};

impl Twin {
    /// Whether its server can be all that the description asks for.
    ///
    /// # Errors
    ///
    /// The first thing that it cannot be, as a sentence.
    pub(crate) fn possible(&self) -> Result<(), String> {
        let all = self.about_content().into_iter().chain(self.about_http()).chain(self.about_tls());
        match all.filter(|(asked, _)| *asked).map(|(_, what)| what).next() {
            None => Ok(()),
            Some(what) => Err(format!("{} {what}", self.server.name())),
        }
    }

    fn about_content(&self) -> Vec<(bool, &'static str)> {
        let is_path = matches!(self.content, Content::Path(_));
        let serves_paths = matches!(self.server, Server::Ruler | Server::HaproxyRuler | Server::Own);
        vec![(is_path && !serves_paths, "serves files")]
    }

    fn about_http(&self) -> Vec<(bool, &'static str)> {
        let is = |servers: &[Server]| servers.contains(&self.server);
        let usual = Http::default();
        let http = &self.http;
        let proxied = is(&[Server::HaproxyNginx, Server::HaproxyRuler]);
        let own = is(&[Server::Own]);
        let burdened = http.handler != Handler::Plain;
        let coarse = matches!(http.handler, Handler::Locks { .. } | Handler::Limits { .. });
        vec![
            (http.at_a_time.is_some() && !own && !proxied, "does not count requests"),
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
            (http.http2 && (self.tls.is_none() || !(proxied || is(&[Server::Nginx]))), "does not speak HTTP/2"),
            (http.most_streams.is_some() && !http.http2, "has no streams without HTTP/2"),
            (http.stream_window_bytes.is_some() && !(http.http2 && proxied), "chooses its windows"),
            (http.padding_bytes > 0 && is(&[Server::Ruler, Server::Own]), "has header fields of its own choice"),
            (http.log != Log::Off && !is(&[Server::Nginx, Server::Apache]), "writes no access log"),
            (http.shared_lock && !own, "has no lock"),
            (burdened && !own && !is(&[Server::Node]), "is no application"),
            (coarse && is(&[Server::Node]), "has one thread and timers of a millisecond"),
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
            (chosen && is(&[Server::Ruler, Server::Node]), "chooses its suites"),
            (ruler && tls.suites13.is_some() && tls.versions == Versions::Tls12, "chooses its suites of TLS 1.2"),
            (tls.groups.is_some() && ruler, "chooses its groups"),
            (tls.chain_bytes > usual.chain_bytes && ruler, "has a chain of its own making"),
            (
                tls.record_bytes.is_some() && !is(&[Server::Nginx, Server::HaproxyNginx, Server::HaproxyRuler]),
                "chooses the size of records",
            ),
            (!tls.resumption && is(&[Server::Node]), "always resumes"),
        ]
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
