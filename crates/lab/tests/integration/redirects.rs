//! Redirects, followed before the load or in each op: everything that is sent goes where it belongs, as it was meant.

use crate::common::{Server, plan, run};
use duel_model::{AuthPlan, Body, Factor, HttpPlan, Plan, Run, SecretSource, SettingLevels, WorkloadPlan, web};
use std::time::Duration;

/// A form sent with every credential that there is.
fn with_secrets() -> HttpPlan {
    let headers = ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key"].map(|name| (name, "secret"));
    HttpPlan {
        method: "POST".into(),
        body: Body::Text("secret".into()),
        host: Some("secret.example".into()),
        headers: headers.map(|(name, value)| (name.into(), value.into())).into(),
        max_redirects: 3,
        ..HttpPlan::default()
    }
}

fn http_of(run: &Run) -> &HttpPlan {
    let WorkloadPlan::Http(http) = &run.plan.workload else { panic!("it was http") };
    http
}

#[test]
fn what_was_meant_for_the_first_host_is_not_sent_to_the_last() {
    let last = Server::that_ends("127.0.0.2", Duration::ZERO);
    let first = Server::that_redirects("127.0.0.1", 302, &last);
    let run = run(&plan(&[&first], with_secrets())).unwrap();
    assert_eq!(run.slots.iter().map(|slot| slot.tally.ok).sum::<u64>(), 30);
    assert_eq!(first.heard(), 1, "the load goes where the redirect led");
    let heard = last.heard.lock().unwrap();
    assert!(heard.len() >= 30);
    for (head, body) in heard.iter() {
        assert!(head.starts_with("GET /end ") && !head.contains("secret") && body.is_empty(), "{head}{body}");
        assert!(head.contains(&format!("Host: {}\r\n", last.address)), "{head}");
    }
    // What is kept and shown is what was sent.
    assert_eq!(run.plan.targets[0].address, format!("http://{}/end", last.address));
    let http = http_of(&run);
    assert_eq!((http.method.as_str(), &http.body, &http.host), ("GET", &Body::None, &None));
    assert!(http.headers.is_empty() && http.max_redirects == 0, "{:?}", http.headers);
}

#[test]
fn a_bearer_token_is_left_behind_and_kept_on_the_same_host() {
    let file = std::env::temp_dir().join(format!("duel-lab-redirects-{}", std::process::id()));
    std::fs::write(&file, "token-of-mine\n").unwrap();
    let mut http = HttpPlan { max_redirects: 3, ..HttpPlan::default() };
    http.requests.auth = Some(AuthPlan::Bearer { token: SecretSource::File(file.clone()) });
    for (ip, keeps) in [("127.0.0.1", true), ("127.0.0.2", false)] {
        let last = Server::that_ends(ip, Duration::ZERO);
        let first = Server::that_redirects("127.0.0.1", 307, &last);
        let run = run(&plan(&[&first], http.clone())).unwrap();
        assert_eq!(http_of(&run).requests.auth.is_some(), keeps);
        let heard = last.heard.lock().unwrap();
        assert!(heard.len() > 1 && heard.iter().all(|(head, _)| head.contains("token-of-mine") == keeps));
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn targets_that_redirects_leave_with_other_requests_are_not_compared() {
    let last = Server::that_ends("127.0.0.2", Duration::ZERO);
    let (redirects, answers) =
        (Server::that_redirects("127.0.0.1", 302, &last), Server::that_ends("127.0.0.1", Duration::ZERO));
    let told = run(&plan(&[&redirects, &answers], with_secrets())).unwrap_err().to_string();
    assert!(told.contains("other requests for T1 than for T0"), "{told}");
    // Without anything that is left behind, the requests are the same.
    run(&plan(&[&redirects, &answers], HttpPlan { max_redirects: 3, ..HttpPlan::default() })).unwrap();
}

fn body_sizes() -> Factor {
    let levels = vec!["10".into(), "20".into()];
    Factor::Setting(SettingLevels { schema: &web::SCHEMA, param: &web::settings::BODY_SIZE, levels })
}

#[test]
fn bodies_that_a_redirect_takes_away_are_not_varied() {
    let last = Server::that_ends("127.0.0.1", Duration::ZERO);
    let first = Server::that_redirects("127.0.0.1", 302, &last);
    let http = HttpPlan { method: "POST".into(), max_redirects: 1, ..HttpPlan::default() };
    let varied = Plan { factors: vec![body_sizes()], ..plan(&[&first], http) };
    let told = run(&varied).unwrap_err().to_string();
    assert!(told.contains("makes a GET"), "{told}");
}

#[test]
fn all_treatments_follow_the_redirects_of_each_op() {
    let last = Server::that_ends("127.0.0.2", Duration::ZERO);
    let first = Server::that_redirects("127.0.0.1", 302, &last);
    let http = HttpPlan { max_redirects: 5, follows_each: true, ..HttpPlan::default() };
    let levels = vec!["on".into(), "off".into()];
    let keepalive = SettingLevels { schema: &web::SCHEMA, param: &web::settings::KEEPALIVE, levels };
    let run = run(&Plan { factors: vec![Factor::Setting(keepalive)], ..plan(&[&first], http) }).unwrap();
    for treatment in 0..2 {
        let slots = run.slots.iter().filter(|slot| slot.treatment == Some(treatment));
        assert!(slots.map(|slot| slot.tally.ok).sum::<u64>() > 0);
    }
    let tally = |of: fn(&duel_model::Tally) -> u64| run.slots.iter().map(|slot| of(&slot.tally)).sum::<u64>();
    assert_eq!(tally(|tally| tally.started), tally(|tally| tally.ok));
    // And the first contact of each treatment, by which the last host was found.
    assert_eq!(last.heard() as u64, tally(|tally| tally.ok) + 2, "each op has come to the end");
}

#[test]
fn where_nothing_redirects_the_request_may_be_varied() {
    let server = Server::that_ends("127.0.0.1", Duration::ZERO);
    let mut plan = plan(&[&server], HttpPlan { max_redirects: 3, method: "POST".into(), ..HttpPlan::default() });
    plan.factors = vec![body_sizes()];
    let run = run(&plan).unwrap();
    let WorkloadPlan::Http(http) = &run.plan.workload else { panic!("{:?}", run.plan.workload) };
    assert_eq!((&http.body, http.max_redirects), (&Body::None, 0), "as it is without any treatment");
}
