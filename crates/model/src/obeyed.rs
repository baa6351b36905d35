//! What a plan makes this machine do beyond sending load to the targets' addresses: files that are opened, variables that
//! are read, programs that are started, and others who are talked to. Who did not write the plan has to know of it first.
//!
//! Every field of a plan is named here, so that a new one cannot be forgotten: each is either told or said to be harmless.

use crate::web::settings::INSECURE;
use crate::{
    AuthPlan, Body, ComparePlan, ConnectTo, FormField, FormPlan, FormValue, HostAccess, HostPlan, HttpPlan, LoadPlan,
    Param, Plan, ProxyPlan, ReachPlan, RedfishPlan, RequestSource, RequestsPlan, RestartCommand, SecretSource, Sort,
    Target, WorkloadPlan, sanitize, sanitize_line,
};
use std::path::Path;

impl Plan {
    /// What carrying out the plan opens, reads, starts and talks to, each in a few words that are safe to show and go on
    /// from "this plan would". Empty where it only sends requests that stand in the plan itself to the targets' addresses.
    pub fn obeyed(&self) -> Vec<String> {
        // How much load there is, and how it is judged, is no matter of trust: it goes to the targets. Factors vary what is
        // sent there by values of their own.
        let Self { targets, workload, load: LoadPlan { .. }, compare: _, factors: _ } = self;
        // First, so that it is not among what is left out of a long list.
        let mut told = self.overwritten();
        told.extend(self.carried_out());
        let reaches = if let WorkloadPlan::Plain(kind) = workload { kind.schema.reaches } else { &[] };
        let runs_targets = matches!(workload, WorkloadPlan::Plain(kind) if kind.schema.runs_targets);
        for Target { name, address, host } in targets {
            host.iter().for_each(|host| of_host(name, host, &mut told));
            if let Some(reach) = reaches.iter().find(|reach| reach.is_of(address)) {
                told.push(format!("{} {}, as the target {}", reach.what, shown(address), shown(name)));
            }
            // A scheme with nothing behind it stands for what this machine has of its own.
            if runs_targets && address.split_once(':').is_none_or(|(_, rest)| !rest.is_empty()) {
                told.push(format!("run {} on this machine, as the target {}", shown(address), shown(name)));
            }
        }
        if let WorkloadPlan::Http(http) = workload {
            of_http(http, &mut told);
        }
        for (param, value) in workload.changed() {
            let (name, file) = (param.name, || path(Path::new(&*value)));
            match param.sort {
                Sort::File => told.push(format!("read the file {} (--{name})", file())),
                Sort::Sent(what) => told.push(format!("{what} {} (--{name})", file())),
                Sort::Assignments => {
                    told.push(format!("set {} in its sessions on the targets (--{name})", shown(&value)));
                }
                _ => {}
            }
        }
        if !told.is_empty() {
            told.extend(self.unverified());
        }
        told
    }

    /// What the plan says may be overwritten, a line for each path: of one long line the end would be cut.
    pub fn overwritten(&self) -> Vec<String> {
        let lists = self.workload.changed().filter(|(param, _)| param.sort == Sort::Destroys);
        let told =
            |param: &Param, one: &str| format!("OVERWRITE THE CONTENT OF {} (--{})", path(Path::new(one)), param.name);
        lists.flat_map(|(param, value)| value.split(',').map(|one| told(param, one)).collect::<Vec<_>>()).collect()
    }

    /// The commands by which the plan starts targets anew, a line for each, whole: an end that is cut might be what matters.
    pub fn carried_out(&self) -> Vec<String> {
        let ComparePlan {
            restart,
            seed: _,
            margin: _,
            confidence: _,
            max_load_ns: _,
            slot_ns: _,
            min_pairs: _,
            stop_early: _,
        } = &self.compare;
        let whole = |text: &str| sanitize(text).replace(['\n', '\t'], " ");
        let told = |command: &RestartCommand| {
            format!("RUN THE COMMAND '{}', to start {} anew", whole(&command.command), shown(&command.target))
        };
        restart.iter().flat_map(|restart| &restart.commands).map(told).collect()
    }

    /// What to say of a plan under which whoever answers gets what is sent; to be told beside what that is.
    pub fn unverified(&self) -> Option<String> {
        let is_varied = self.factors.iter().any(|factor| factor.name() == INSECURE.name);
        let is_unverified = is_varied || matches!(&self.workload, WorkloadPlan::Http(http) if !http.tls.verify);
        is_unverified.then(|| "not verify the certificates of its servers".to_owned())
    }
}

fn of_host(target: &str, plan: &HostPlan, told: &mut Vec<String>) {
    // Which process is looked at, and which one it was: read by a script of ours, which sends nothing.
    let HostPlan { access, server: _, process: _, redfish } = plan;
    match access {
        // This machine, by the same script; what it tells is shown and kept here.
        HostAccess::Local => {}
        HostAccess::Ssh(destination) => {
            told.push(format!("log in to {} by ssh, to read the machine of {}", shown(destination), shown(target)));
        }
    }
    if let Some(RedfishPlan { address, user, password_file, verify }) = redfish {
        let from = match password_file {
            Some(file) => format!("in the file {}", path(file)),
            None => "in the environment".to_owned(),
        };
        let user = user.as_deref().map_or_else(String::new, |user| format!(" of {}", shown(user)));
        let unverified = if *verify { "" } else { ", whose certificate is not verified" };
        told.push(format!("send the password{user} {from} to the controller {}{unverified}", shown(address)));
    }
}

fn of_http(plan: &HttpPlan, told: &mut Vec<String>) {
    let HttpPlan {
        // Texts of the plan, and how requests are made and counted.
        method: _,
        headers: _,
        body,
        keepalive: _,
        accept_encoding: _,
        range_bytes: _,
        // Where a target leads is up to the target; credentials stay with its host.
        max_redirects: _,
        connect_to,
        quick_ack: _,
        segment_bytes: _,
        follows_each: _,
        accepts_any_status: _,
        proxy,
        requests,
        reach,
        http2: _,
        // Settings that are declared are told as those of any kind of work are. Asked for beside what a server would be given
        // whose certificate is not verified: `Plan::unverified`.
        host: _,
        unix_socket: _,
        tls: _,
        settings: _,
    } = plan;
    match body {
        Body::None | Body::Text(_) | Body::Generated(_) => {}
        Body::File(file) => told.push(format!("send the content of the file {}", path(file))),
    }
    for ConnectTo { host, port, to_host, to_port } in connect_to {
        let rule = ConnectTo { host: host.clone(), port: *port, to_host: to_host.clone(), to_port: *to_port };
        told.push(format!("connect elsewhere than the addresses say (--connect-to {})", shown(&rule.to_string())));
    }
    if let Some(ProxyPlan { host, port }) = proxy {
        let proxy = ProxyPlan { host: host.clone(), port: *port };
        told.push(format!("send all requests through the proxy {}", shown(&proxy.to_string())));
    }
    of_requests(requests, told);
    of_reach(reach, told);
}

fn of_requests(plan: &RequestsPlan, told: &mut Vec<String>) {
    let RequestsPlan {
        source,
        order: _,
        seed: _,
        // Variables are numbers of ours and columns of the data file; none is of the environment.
        is_template: _,
        data_file,
        cookies: _,
        auth,
        form,
        decompress: _,
    } = plan;
    if let Some(RequestSource { file, format: _ }) = source {
        told.push(format!("send the requests in the file {}, and the files that it names", path(file)));
    }
    told.extend(data_file.iter().map(|file| format!("send values of the file {}", path(file))));
    match auth {
        None => {}
        Some(AuthPlan::Basic { user, password }) => {
            told.push(format!("send {} as the password of {}", secret(password), shown(user)));
        }
        Some(AuthPlan::Bearer { token }) => told.push(format!("send {} as a token", secret(token))),
        Some(AuthPlan::AwsSigV4 { region: _, service: _ }) => {
            told.push("sign requests with the AWS keys in the environment, and send its session token".to_owned());
        }
    }
    if let Some(FormPlan { is_multipart: _, fields }) = form {
        for FormField { name, value } in fields {
            match value {
                FormValue::Text(_) => {}
                FormValue::Content(file) | FormValue::Upload(file) => {
                    told.push(format!("send the content of the file {} as the field {}", path(file), shown(name)));
                }
            }
        }
    }
}

fn of_reach(plan: &ReachPlan, told: &mut Vec<String>) {
    // From which of our addresses, and to which of those that a name has; the PROXY protocol tells these and no more.
    let ReachPlan { sources: _, overrides, addresses: _, family: _, proxy_protocol: _ } = plan;
    let rule = |rule: &dyn std::fmt::Display| shown(&rule.to_string());
    told.extend(overrides.iter().map(|given| format!("take a name for other addresses (--resolve {})", rule(given))));
}

fn secret(source: &SecretSource) -> String {
    match source {
        SecretSource::File(file) => format!("the first line of the file {}", path(file)),
        SecretSource::Environment(variable) => format!("the variable ${}", shown(variable)),
    }
}

fn path(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

fn shown(text: &str) -> String {
    sanitize_line(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ComparePlan, Factor, KindPlan, NameOverride, RequestFormat, ServerPlan};

    fn plan(http: HttpPlan) -> Plan {
        Plan {
            targets: vec![Target { name: "A".into(), address: "http://a/".into(), host: None }],
            workload: WorkloadPlan::Http(Box::new(http)),
            load: LoadPlan::default(),
            compare: ComparePlan::default(),
            factors: vec![Factor::Path(vec!["/x".into()]), Factor::Connections(vec![1])],
        }
    }

    #[test]
    fn what_is_overwritten_is_told_first_and_path_by_path_and_cannot_be_varied() {
        const DESTROY: crate::Param =
            crate::Param { name: "destroy", value_name: "PATH", help: "", sort: Sort::Destroys, default: "" };
        static DISKS: crate::Schema = crate::Schema {
            kind: "disks",
            params: &[DESTROY],
            reaches: &[crate::Reach::all("/", "work on the path")],
            ..crate::null::SCHEMA
        };
        let long = format!("{}/home/u/thesis", "/tmp/a,".repeat(200));
        let settings = [(DESTROY.id(), long)].into();
        let workload = WorkloadPlan::Plain(KindPlan { schema: &DISKS, settings });
        let targets =
            (0..30).map(|n| Target { name: format!("T{n}"), address: format!("/x{n}"), host: None }).collect();
        let plan = Plan { workload, targets, factors: Vec::new(), ..plan(HttpPlan::default()) };
        let told = plan.obeyed();
        assert_eq!(told[200], "OVERWRITE THE CONTENT OF /home/u/thesis (--destroy)");
        assert_eq!((plan.overwritten().len(), told.len()), (201, 231));
        assert!(!DESTROY.can_vary());
    }

    #[test]
    fn what_leaves_this_machine_and_what_sessions_are_set_to_is_told() {
        const PROGRAM: crate::Param = crate::Param {
            name: "program",
            value_name: "FILE",
            help: "",
            sort: Sort::Sent("carry out there the file"),
            default: "",
        };
        const SET: crate::Param = crate::Param { name: "set", sort: Sort::Assignments, ..PROGRAM };
        static KIND: crate::Schema = crate::Schema { params: &[PROGRAM, SET], ..crate::null::SCHEMA };
        let settings = [(PROGRAM.id(), "/x/own".to_owned()), (SET.id(), "a=1".to_owned())].into();
        let workload = WorkloadPlan::Plain(KindPlan { schema: &KIND, settings });
        let mut told = Plan { workload, ..plan(HttpPlan::default()) }.obeyed();
        told.sort();
        assert_eq!(
            told,
            ["carry out there the file /x/own (--program)", "set a=1 in its sessions on the targets (--set)"]
        );
        assert!(!PROGRAM.can_vary() && !PROGRAM.takes_lists("a,b"));
    }

    #[test]
    fn a_plan_that_only_sends_what_it_says_asks_for_nothing() {
        let http = HttpPlan {
            headers: vec![("X".into(), "y".into())],
            body: Body::Text("b".into()),
            max_redirects: 3,
            ..HttpPlan::default()
        };
        assert_eq!(plan(http).obeyed(), [""; 0]);
        assert_eq!(Plan { workload: WorkloadPlan::NULL, ..plan(HttpPlan::default()) }.obeyed(), [""; 0]);
        let host = HostPlan { access: HostAccess::Local, server: ServerPlan::Pid(1), process: None, redfish: None };
        let mut local = plan(HttpPlan::default());
        local.targets[0].host = Some(host);
        assert_eq!(local.obeyed(), [""; 0]);
    }

    #[test]
    fn verification_that_a_treatment_switches_off_is_told() {
        let mut plan = plan(HttpPlan { body: Body::File("/x".into()), ..HttpPlan::default() });
        assert_eq!((plan.unverified(), plan.obeyed().len()), (None, 1));
        let levels = vec!["off".into(), "on".into()];
        let schema = &crate::web::SCHEMA;
        plan.factors = vec![Factor::Setting(crate::SettingLevels { schema, param: &INSECURE, levels })];
        assert!(plan.unverified().is_some() && plan.obeyed().len() == 2);
    }

    #[test]
    fn only_a_bare_scheme_runs_unasked() {
        static RUNS: crate::Schema = crate::Schema { runs_targets: true, ..crate::null::SCHEMA };
        for (address, is_asked) in
            [("own:", false), ("own:/lib/x", true), ("own:rm -r /; :", true), ("own::", true), ("rm", true)]
        {
            let mut plan = plan(HttpPlan::default());
            plan.workload = WorkloadPlan::Plain(crate::KindPlan::of(&RUNS));
            plan.targets[0].address = address.into();
            assert_eq!(plan.obeyed().len(), usize::from(is_asked), "{address}");
        }
    }

    #[test]
    fn an_address_that_enters_a_part_of_this_machine_is_told_and_others_of_its_kind_are_not() {
        const REACH: crate::Reach =
            crate::Reach { begins: "net:", holds: "?in=", what: "enter a part of this machine for" };
        static NETS: crate::Schema = crate::Schema { reaches: &[REACH], ..crate::null::SCHEMA };
        for (address, told) in [("net:a", 0), ("net:a?in=x", 1), ("other:a?in=x", 0)] {
            let mut plan = plan(HttpPlan::default());
            plan.workload = WorkloadPlan::Plain(crate::KindPlan::of(&NETS));
            plan.targets[0].address = address.into();
            assert_eq!(plan.obeyed().len(), told, "{address}");
        }
    }

    #[test]
    fn whatever_is_opened_read_or_talked_to_is_told() {
        let of = |change: fn(&mut HttpPlan)| {
            let mut http = HttpPlan::default();
            change(&mut http);
            plan(http).obeyed().join("; ")
        };
        let form = |value| Some(FormPlan { is_multipart: true, fields: vec![FormField { name: "f".into(), value }] });
        for (told, part) in [
            (of(|http| http.body = Body::File("/x/body".into())), "/x/body"),
            (of(|http| http.unix_socket = Some("/x/sock".into())), "/x/sock"),
            (of(|http| http.proxy = Some(ProxyPlan { host: "p".into(), port: 1 })), "p:1"),
            (of(|http| http.tls.ca_file = Some("/x/ca".into())), "/x/ca"),
            (of(|http| http.tls.client_cert_file = Some("/x/cert".into())), "/x/cert"),
            (of(|http| http.tls.client_key_file = Some("/x/key".into())), "/x/key"),
            (of(|http| http.requests.data_file = Some("/x/data".into())), "/x/data"),
            (
                of(|http| {
                    let source = RequestSource { file: "/x/urls".into(), format: RequestFormat::Urls };
                    http.requests.source = Some(source);
                }),
                "/x/urls",
            ),
            (
                of(|http| {
                    let password = SecretSource::Environment("HOME".into());
                    http.requests.auth = Some(AuthPlan::Basic { user: "u".into(), password });
                }),
                "$HOME",
            ),
            (
                of(|http| {
                    http.requests.auth = Some(AuthPlan::Bearer { token: SecretSource::File("/x/token".into()) });
                }),
                "/x/token",
            ),
            (
                of(|http| {
                    http.requests.auth = Some(AuthPlan::AwsSigV4 { region: "r".into(), service: "s".into() });
                }),
                "AWS",
            ),
            (
                of(|http| {
                    let (host, to_host) = (String::new(), "elsewhere".to_owned());
                    http.connect_to = vec![ConnectTo { host, port: None, to_host, to_port: None }];
                }),
                "elsewhere",
            ),
            (of(|http| http.reach.overrides = vec!["h:1:127.0.0.9".parse::<NameOverride>().unwrap()]), "127.0.0.9"),
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        for value in [FormValue::Content("/x/up".into()), FormValue::Upload("/x/up".into())] {
            let requests = RequestsPlan { form: form(value), ..RequestsPlan::default() };
            let told = plan(HttpPlan { requests, ..HttpPlan::default() }).obeyed().join("; ");
            assert!(told.contains("/x/up"), "{told}");
        }
        let mut far = plan(HttpPlan::default());
        far.targets[0].host = Some(HostPlan {
            access: HostAccess::Ssh("me@far".into()),
            server: ServerPlan::Unknown,
            process: None,
            redfish: Some(RedfishPlan {
                address: "https://bmc".into(),
                user: None,
                password_file: Some("/x/pw".into()),
                verify: false,
            }),
        });
        let told = far.obeyed().join("; ");
        assert!(["me@far", "/x/pw", "https://bmc"].iter().all(|part| told.contains(part)), "{told}");
    }
}
