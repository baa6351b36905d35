//! What a worker's next op sends: which of the requests, with which values.
//!
//! Workers share nothing while a slot runs. Worker w of W begins at its W-th part of the list and goes round from there, so
//! that each request is sent equally often by each worker, and `-n` of a list's length sends each exactly once. Numbers
//! are w, w + W, w + 2 W and so on, beyond all that were given before. A worker that goes round in a few requests begins anew behind them.

use crate::requests::cookies::{Jar, path_of};
use crate::requests::place::{self, Place};
use crate::requests::repertoire::{Piece, Progress, Repertoire, SHORT_BODY_BYTES, Span};
use crate::requests::request::Outgoing;
use crate::requests::sigv4::{self, Signable};
use duel_load::{WorkerId, unix_ms};
use duel_template::Variable;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::io::Write;
use std::sync::PoisonError;

/// One worker's choices.
#[derive(Debug)]
pub(crate) struct Picker {
    worker: WorkerId,
    /// Ops begun in all sessions, and when this one was opened.
    begun: u64,
    begun_before: u64,
    next_number: u64,
    /// Where the next op stands among the list's weights.
    point: u64,
    /// From one op to the next.
    stride: u64,
    row: usize,
    random: Pcg64Mcg,
    /// A body with its values.
    body: Vec<u8>,
    round: Option<Round>,
}

/// Ops after which a worker begins anew, and where it stood then.
#[derive(Debug)]
struct Round {
    ops: u64,
    left: u64,
    number: u64,
    point: u64,
    row: usize,
    random: Pcg64Mcg,
}

/// What a connection's op sends.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    item: u32,
    /// The head is in `head` instead of the repertoire.
    is_rendered: bool,
    head: Vec<u8>,
    /// The body, where it is not in `head`.
    body: Span,
}

impl Draft {
    /// Number of the request that was chosen, if it is sent as it stands in the repertoire.
    #[inline]
    pub(crate) fn fixed(&self) -> Option<usize> {
        (!self.is_rendered).then_some(self.item as usize)
    }

    #[inline]
    pub(crate) fn outgoing<'a>(&'a self, repertoire: &'a Repertoire) -> Outgoing<'a> {
        let Some(item) = repertoire.items.get(self.item as usize) else {
            return Outgoing { head: &[], body: &[], is_idempotent: false };
        };
        let is_idempotent = item.is_idempotent;
        if self.is_rendered {
            return Outgoing { head: &self.head, body: &repertoire.arena[self.body.range()], is_idempotent };
        }
        if item.body.start == item.head.end {
            let whole = item.head.start as usize..item.body.end as usize;
            return Outgoing { head: &repertoire.arena[whole], body: &[], is_idempotent };
        }
        let (head, body) = (&repertoire.arena[item.head.range()], &repertoire.arena[item.body.range()]);
        Outgoing { head, body, is_idempotent }
    }
}

/// What variables stand for in one op.
struct Values {
    number: u64,
    row: usize,
    uuid: Option<u128>,
}

impl Picker {
    pub(crate) fn new(repertoire: &Repertoire, worker: WorkerId) -> Self {
        let progress = repertoire.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let number = u64::from(worker.number);
        // Who goes round begins where the first session began.
        let begun = match progress.round {
            Some(_) => 0,
            None => progress.begun.get(worker.number as usize).copied().unwrap_or(0),
        };
        // Where the worker goes on, and what its random values never were before.
        let gone = progress.contacted + begun;
        let total = repertoire.total;
        let stride = if repertoire.cumulative.is_empty() { 1 } else { scattering_stride(total) };
        let position = (u128::from(share(total, worker)) + u128::from(gone)) * u128::from(stride);
        let rows = repertoire.rows.as_ref().map_or(1, |rows| rows.len() as u64);
        let next_number = if progress.round.is_some() { number } else { progress.next_number + number };
        let point = (position % u128::from(total)) as u64;
        let row = ((share(rows, worker) + gone) % rows) as usize;
        let random =
            Pcg64Mcg::seed_from_u64(repertoire.seed ^ (number << 48) ^ gone.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let beginning = |ops| Round { ops, left: ops, number: next_number, point, row, random: random.clone() };
        let round = progress.round.map(beginning);
        Self { worker, begun, begun_before: begun, next_number, point, stride, row, random, body: Vec::new(), round }
    }

    /// Leaves word of how far this worker has come, for sessions to come.
    pub(crate) fn leave_word(&mut self, repertoire: &Repertoire) {
        if self.begun == self.begun_before {
            return;
        }
        let mut progress = repertoire.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let Progress { next_number, begun, .. } = &mut *progress;
        let worker = self.worker.number as usize;
        if begun.len() <= worker {
            begun.resize(worker + 1, 0);
        }
        begun[worker] = self.begun;
        // Its last number is one step back.
        *next_number = (*next_number).max(self.next_number + 1 - u64::from(self.worker.of));
    }

    /// Chooses the next op's request and puts its values in; answers whether its response has no body.
    pub(crate) fn pick(&mut self, repertoire: &Repertoire, draft: &mut Draft, jar: Option<&Jar>) -> bool {
        if let Some(round) = &mut self.round {
            if round.left == 0 {
                round.left = round.ops;
                (self.next_number, self.point, self.row) = (round.number, round.point, round.row);
                self.random = round.random.clone();
            }
            round.left -= 1;
        }
        let index = self.next_index(repertoire);
        let values = Values { number: self.next_number, row: self.row, uuid: None };
        self.next_number += u64::from(self.worker.of);
        self.begun += 1;
        if let Some(rows) = &repertoire.rows {
            self.row = if self.row + 1 == rows.len() { 0 } else { self.row + 1 };
        }
        draft.item = index as u32;
        let item = &repertoire.items[index];
        let jar = jar.filter(|jar| !jar.is_empty());
        let is_fixed = item.head_pieces.is_empty() && item.body_pieces.is_empty();
        draft.is_rendered = !is_fixed || jar.is_some() || repertoire.signer.is_some();
        if draft.is_rendered {
            self.render(repertoire, index, draft, jar, values);
        }
        item.is_head
    }

    fn next_index(&mut self, repertoire: &Repertoire) -> usize {
        let point = if repertoire.is_random {
            self.random.random_range(0..repertoire.total)
        } else {
            let point = self.point;
            self.point += self.stride;
            if self.point >= repertoire.total {
                self.point -= repertoire.total;
            }
            point
        };
        if repertoire.cumulative.is_empty() {
            point as usize
        } else {
            repertoire.cumulative.partition_point(|&sum| sum <= point)
        }
    }

    fn render(
        &mut self,
        repertoire: &Repertoire,
        index: usize,
        draft: &mut Draft,
        jar: Option<&Jar>,
        mut values: Values,
    ) {
        let item = &repertoire.items[index];
        let Self { random, body, .. } = self;
        let mut put = |pieces: Span, out: &mut Vec<u8>| {
            for piece in &repertoire.pieces[pieces.range()] {
                put_piece(repertoire, *piece, &mut values, random, out);
            }
        };
        body.clear();
        put(item.body_pieces, body);
        let head = &mut draft.head;
        head.clear();
        if item.head_pieces.is_empty() {
            // Without the empty line at its end.
            let fixed = &repertoire.arena[item.head.range()];
            head.extend_from_slice(&fixed[..fixed.len() - 2]);
        } else {
            put(item.head_pieces, head);
        }
        let body_varies = !item.body_pieces.is_empty();
        if body_varies && (item.announces_empty || !body.is_empty()) {
            // Writing to a Vec cannot fail.
            let _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        if let Some(jar) = jar {
            let path = path_of(head).to_vec();
            jar.push_field(&path, head);
        }
        if repertoire.signer.is_some() {
            let hash = if body_varies { &sigv4::hash(body) } else { &repertoire.body_hashes[index] };
            sign(repertoire, head, hash);
        }
        head.extend_from_slice(b"\r\n");
        let fixed_body = &repertoire.arena[item.body.range()];
        draft.body = Span::default();
        if body_varies {
            head.extend_from_slice(body);
        } else if fixed_body.len() <= SHORT_BODY_BYTES {
            head.extend_from_slice(fixed_body);
        } else {
            draft.body = item.body;
        }
    }
}

fn put_piece(repertoire: &Repertoire, piece: Piece, values: &mut Values, random: &mut Pcg64Mcg, out: &mut Vec<u8>) {
    let (variable, place) = match piece {
        Piece::Text(span) => return out.extend_from_slice(&repertoire.arena[span.range()]),
        Piece::Variable(variable, place) => (variable, place),
    };
    // Digits, hyphens and letters can stand anywhere. Writing to a Vec cannot fail.
    let _ = match variable {
        Variable::Number => write!(out, "{}", values.number),
        Variable::Random(low, high) => write!(out, "{}", random.random_range(low..=high)),
        Variable::Uuid => {
            duel_template::push_uuid(out, *values.uuid.get_or_insert_with(|| random.random()));
            Ok(())
        }
        Variable::Column(column) => {
            let value = repertoire.rows.as_ref().map_or(&[][..], |rows| rows.value(values.row, column));
            match place {
                Place::Address => place::push_encoded(out, value),
                Place::Field | Place::Body => out.extend_from_slice(value),
            }
            Ok(())
        }
    };
}

/// Adds the fields of a signature to a head without the empty line at its end.
fn sign(repertoire: &Repertoire, head: &mut Vec<u8>, body_hash: &str) {
    let Some((keys, scope)) = &repertoire.signer else { return };
    let now = sigv4::timestamp(u64::try_from(unix_ms() / 1000).unwrap_or(0));
    let _ = write!(head, "X-Amz-Date: {now}\r\n");
    if let Some(token) = &keys.session_token {
        let _ = write!(head, "X-Amz-Security-Token: {token}\r\n");
    }
    if sigv4::is_s3(&scope.service) {
        let _ = write!(head, "X-Amz-Content-Sha256: {body_hash}\r\n");
    }
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let target = crate::requests::authority_and_target(target).map_or(target, |(_, target)| target);
    let fields = lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_ascii_lowercase(), value));
    let is_signed = |name: &str| matches!(name, "host" | "content-type") || name.starts_with("x-amz-");
    let fields = fields.filter(|(name, _)| is_signed(name)).collect();
    let authorization = sigv4::authorization(&Signable { method, target, fields, body_hash }, keys, scope, &now);
    let _ = write!(head, "Authorization: {authorization}\r\n");
}

/// Where a worker's part of so many begins.
fn share(total: u64, worker: WorkerId) -> u64 {
    let (number, of) = (u64::from(worker.number), u64::from(worker.of));
    total / of * number + number.min(total % of)
}

/// A step that visits all points before it visits one again, and spreads neighbours: the golden ratio's part of all, or the
/// next one without a common factor.
fn scattering_stride(total: u64) -> u64 {
    let golden = (total as f64 * 0.618_033_988_749_895) as u64;
    (golden.max(1)..).find(|&stride| greatest_common_divisor(stride, total) == 1).unwrap_or(1) % total.max(1)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::repertoire::Repertoire;
    use duel_model::{Body, HttpPlan, RequestFormat, RequestOrder, RequestSource, RequestsPlan};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A file for one test, removed with it.
    struct File(std::path::PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> Self {
            let path = std::env::temp_dir().join(format!("duel-picker-{}-{name}", std::process::id()));
            std::fs::write(&path, text).unwrap();
            Self(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn listed(file: &File, order: RequestOrder) -> HttpPlan {
        let source = Some(RequestSource { file: file.0.clone(), format: RequestFormat::Urls });
        HttpPlan { requests: RequestsPlan { source, order, seed: 7, ..RequestsPlan::default() }, ..HttpPlan::default() }
    }

    fn template(url: &str, plan: HttpPlan) -> Repertoire {
        let requests = RequestsPlan { is_template: true, seed: 7, ..plan.requests };
        Repertoire::build(&HttpPlan { requests, ..plan }, &url.parse().unwrap(), url).unwrap()
    }

    fn worker(number: u32, of: u32) -> WorkerId {
        WorkerId { number, of }
    }

    /// What the next op sends.
    fn next(picker: &mut Picker, repertoire: &Repertoire) -> String {
        let mut draft = Draft::default();
        picker.pick(repertoire, &mut draft, None);
        let out = draft.outgoing(repertoire);
        assert_eq!(out.len(), out.head.len() + out.body.len());
        String::from_utf8([out.head, out.body].concat()).unwrap()
    }

    fn target(request: &str) -> &str {
        request.split(' ').nth(1).unwrap()
    }

    fn counts(picker: &mut Picker, repertoire: &Repertoire, ops: usize) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for _ in 0..ops {
            *counts.entry(target(&next(picker, repertoire)).to_owned()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn workers_together_send_a_list_of_their_length_once() {
        let text: String = (0..101).map(|n| format!("/{n}\n")).collect();
        let file = File::new("once", &text);
        let plan = listed(&file, RequestOrder::InTurn);
        for workers in [1, 2, 3, 7] {
            let repertoire = Repertoire::build(&plan, &"http://h/base/".parse().unwrap(), "http://h/base/").unwrap();
            let mut seen = BTreeMap::new();
            for number in 0..workers {
                let ops = 101 / workers + u32::from(number < 101 % workers);
                let mut picker = Picker::new(&repertoire, worker(number, workers));
                seen.extend(counts(&mut picker, &repertoire, ops as usize));
            }
            assert_eq!(seen.len(), 101, "{workers} workers");
            assert!(seen.contains_key("/base/100"));
        }
    }

    #[test]
    fn each_request_says_once_where_its_body_ends() {
        for name in ["Content-Length", "Transfer-Encoding"] {
            let headers = vec![(name.to_owned(), "3".to_owned())];
            let requests = RequestsPlan { is_template: true, ..RequestsPlan::default() };
            let plan = HttpPlan { headers, requests, body: Body::Text("{n}".into()), ..HttpPlan::default() };
            let told = Repertoire::build(&plan, &"http://h/{n}".parse().unwrap(), "http://h/{n}").unwrap_err().0;
            assert!(told.contains(name) && told.contains("follows from the body"), "{told}");
        }
        // The plan's body is taken for each entry, and its variables are read once.
        let file = File::new("lengths", "/a\n/b\n/{n}\n");
        let plan = listed(&file, RequestOrder::InTurn);
        let plan = HttpPlan { method: "POST".into(), body: Body::Text("id={uuid}".into()), ..plan };
        let repertoire = template("http://h/", plan);
        assert_eq!(repertoire.pieces.iter().filter(|piece| matches!(piece, Piece::Variable(..))).count(), 2);
        let mut picker = Picker::new(&repertoire, WorkerId::ONLY);
        for _ in 0..6 {
            let sent = next(&mut picker, &repertoire);
            assert_eq!(sent.matches("Content-Length: 39\r\n").count(), 1, "{sent}");
            assert_eq!(sent.matches("Content-Length").count(), 1, "{sent}");
        }
    }

    #[test]
    fn each_round_has_each_request_as_often_as_its_weight() {
        let file = File::new("weights", "3 /a\n1 /b\n6 /c\n");
        let repertoire =
            Repertoire::build(&listed(&file, RequestOrder::InTurn), &"http://h/".parse().unwrap(), "http://h/")
                .unwrap();
        let expected: BTreeMap<String, usize> =
            [("/a", 3), ("/b", 1), ("/c", 6)].map(|(t, n)| (t.to_owned(), n)).into();
        let mut picker = Picker::new(&repertoire, worker(1, 2));
        for _ in 0..3 {
            assert_eq!(counts(&mut picker, &repertoire, 10), expected);
        }
    }

    #[test]
    fn chance_follows_the_weights_and_repeats_with_its_seed() {
        let file = File::new("random", "3 /a\n1 /b\n");
        let repertoire =
            Repertoire::build(&listed(&file, RequestOrder::Random), &"http://h/".parse().unwrap(), "http://h/")
                .unwrap();
        let sequence = |number: u32| {
            let mut picker = Picker::new(&repertoire, worker(number, 2));
            (0..2000).map(|_| target(&next(&mut picker, &repertoire)).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(sequence(0), sequence(0));
        assert_ne!(sequence(0), sequence(1));
        let a = sequence(0).iter().filter(|target| *target == "/a").count();
        // Binomial with 2000 draws: the standard deviation is 19.
        assert!((1400..1600).contains(&a), "{a}");
    }

    #[test]
    fn numbers_are_unique_over_workers_and_sessions() {
        let repertoire = template("http://h/{n}", HttpPlan::default());
        let mut seen = BTreeMap::new();
        for (session, workers) in [1u32, 3, 2].into_iter().enumerate() {
            let mut pickers: Vec<Picker> = (0..workers).map(|w| Picker::new(&repertoire, worker(w, workers))).collect();
            for (index, picker) in pickers.iter_mut().enumerate() {
                for _ in 0..(index * 2 + session) {
                    *seen.entry(target(&next(picker, &repertoire)).to_owned()).or_insert(0) += 1;
                }
            }
            pickers.iter_mut().for_each(|picker| picker.leave_word(&repertoire));
        }
        assert!(seen.values().all(|&count| count == 1), "{seen:?}");
        assert_eq!(seen.len(), 9 + 6);
    }

    #[test]
    fn a_session_goes_on_where_the_last_one_was() {
        let file = File::new("on", "/0\n/1\n/2\n/3\n");
        let repertoire =
            Repertoire::build(&listed(&file, RequestOrder::InTurn), &"http://h/".parse().unwrap(), "http://h/")
                .unwrap();
        let mut first = Picker::new(&repertoire, WorkerId::ONLY);
        next(&mut first, &repertoire);
        first.leave_word(&repertoire);
        assert_eq!(target(&next(&mut Picker::new(&repertoire, WorkerId::ONLY), &repertoire)), "/1");
    }

    #[test]
    fn what_the_first_contact_has_sent_is_sent_again_only_after_all_else() {
        let text: String = (0..10).map(|n| format!("/{n}\n")).collect();
        let file = File::new("contact", &text);
        let rows = File::new("contact.csv", &format!("row\n{text}"));
        for workers in [1, 2, 3] {
            for failed in [0, 2] {
                let requests = RequestsPlan {
                    is_template: true,
                    data_file: Some(rows.0.clone()),
                    ..listed(&file, RequestOrder::InTurn).requests
                };
                let body = Body::Text("{row} {uuid}".into());
                let plan = HttpPlan { method: "POST".into(), body, requests, ..HttpPlan::default() };
                let repertoire = Repertoire::build(&plan, &"http://h/".parse().unwrap(), "http://h/").unwrap();
                let mut seen = Vec::new();
                for _ in 0..=failed {
                    let mut contact = Picker::new(&repertoire, WorkerId::ONLY);
                    seen.push(next(&mut contact, &repertoire));
                    contact.leave_word(&repertoire);
                }
                repertoire.leave_contact_behind();
                let contacted = seen.len();
                for number in 0..workers {
                    let mut picker = Picker::new(&repertoire, worker(number, workers));
                    let ops = 10 / workers + u32::from(number < 10 % workers);
                    seen.extend((0..ops).map(|_| next(&mut picker, &repertoire)));
                }
                let distinct = |of: &dyn Fn(&String) -> String, from: usize| {
                    seen[from..].iter().map(of).collect::<std::collections::BTreeSet<_>>().len()
                };
                let words = |sent: &String| {
                    sent.rsplit("\r\n").next().unwrap().split(' ').map(str::to_owned).collect::<Vec<_>>()
                };
                // As many ops as the list is long send each of it once, and each row; with one worker the first ones are those
                // that the contact has not sent.
                assert_eq!(distinct(&|sent| target(sent).to_owned(), contacted), 10);
                assert_eq!(distinct(&|sent| words(sent)[0].clone(), contacted), 10);
                assert_eq!(distinct(&|sent| words(sent)[1].clone(), 0), seen.len(), "a UUID came twice");
                if workers == 1 {
                    let fresh: Vec<_> = seen[..10].iter().map(|sent| target(sent).to_owned()).collect();
                    assert_eq!(fresh, (0..10).map(|n| format!("/{n}")).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn what_goes_on_after_earlier_load_sends_none_of_it_again() {
        let sent = |repertoire: &Repertoire, of: u32, ops: usize| {
            let of_worker = |number| {
                let mut picker = Picker::new(repertoire, worker(number, of));
                let sent: Vec<String> = (0..ops).map(|_| next(&mut picker, repertoire)).collect();
                picker.leave_word(repertoire);
                sent
            };
            (0..of).flat_map(of_worker).collect::<Vec<_>>()
        };
        for variable in ["{n}", "{uuid}"] {
            let build = || template(&format!("http://h/{variable}"), HttpPlan::default());
            let mut all = sent(&build(), 3, 7);
            let later = build();
            later.go_on_after(21, 3);
            all.extend(sent(&later, 3, 5));
            let later = build();
            later.go_on_after(36, 3);
            all.extend(sent(&later, 1, 5));
            let distinct: std::collections::BTreeSet<_> = all.iter().collect();
            assert_eq!(distinct.len(), all.len(), "{variable}");
        }
    }

    #[test]
    fn who_goes_round_sends_what_was_sent_first_again_and_again_in_each_session() {
        let file = File::new("round", "/a\n/b\n/c\n/d\n/e\n/f\n");
        let listed_in_turn =
            || Repertoire::build(&listed(&file, RequestOrder::InTurn), &"http://h/".parse().unwrap(), "http://h/");
        let of_template = |url: &str| template(url, HttpPlan::default());
        let builds: [&dyn Fn() -> Repertoire; 4] = [
            &|| listed_in_turn().unwrap(),
            &|| of_template("http://h/{n}"),
            &|| of_template("http://h/{uuid}"),
            &|| of_template("http://h/{rand:1..1000000}"),
        ];
        for build in builds {
            for of in [1, 2] {
                let worker = worker(of - 1, of);
                let sent = |repertoire: &Repertoire, ops: usize| {
                    let mut picker = Picker::new(repertoire, worker);
                    let all: Vec<_> = (0..ops).map(|_| next(&mut picker, repertoire)).collect();
                    picker.leave_word(repertoire);
                    all
                };
                let first = sent(&build(), 2);
                assert_ne!(first[0], first[1]);
                let round = build();
                round.go_round_in(2);
                for _ in 0..2 {
                    let sent = sent(&round, 5);
                    assert_eq!(sent.iter().collect::<Vec<_>>(), [0, 1, 0, 1, 0].map(|place: usize| &first[place]));
                }
            }
        }
    }

    #[test]
    fn a_round_is_as_long_as_what_is_gone_through_in_turn() {
        let urls = File::new("round.txt", "/0\n/1\n/2\n");
        let url = "http://h/";
        let round = |plan: &HttpPlan| Repertoire::build(plan, &url.parse().unwrap(), url).unwrap().round_ops();
        assert_eq!(round(&listed(&urls, RequestOrder::InTurn)), Some(3));
        assert_eq!(round(&listed(&urls, RequestOrder::Random)), None);
        let weighted = File::new("weights.txt", "5 /0\n1 /1\n");
        assert_eq!(round(&listed(&weighted, RequestOrder::InTurn)), None);
        assert_eq!(template("http://h/{n}", HttpPlan::default()).round_ops(), None);
        let rows = File::new("rows.csv", "id\na\nb\nc\nd\n");
        let requests = RequestsPlan { data_file: Some(rows.0.clone()), ..RequestsPlan::default() };
        assert_eq!(template("http://h/{id}", HttpPlan { requests, ..HttpPlan::default() }).round_ops(), Some(4));
    }

    #[test]
    fn variables_stand_in_address_fields_and_body() {
        let file = File::new("values.csv", "id,note\na/b,x\"y\n\u{e9},z\n");
        let plan = HttpPlan {
            method: "POST".into(),
            headers: vec![("X-Id".into(), "{id}".into()), ("X-Uuid".into(), "{uuid}".into())],
            body: Body::Text("{\"n\": {n}, \"note\": \"{note}\", \"u\": \"{uuid}\", \"r\": {rand:5..5}}".into()),
            requests: RequestsPlan { data_file: Some(file.0.clone()), ..RequestsPlan::default() },
            ..HttpPlan::default()
        };
        let repertoire = template("http://h/{id}?q={note}", plan);
        let mut picker = Picker::new(&repertoire, WorkerId::ONLY);
        let first = next(&mut picker, &repertoire);
        assert!(first.starts_with("POST /a%2Fb?q=x%22y HTTP/1.1\r\nHost: h\r\n"), "{first}");
        let (head, body) = first.split_once("\r\n\r\n").unwrap();
        let uuid = head.split("X-Uuid: ").nth(1).unwrap().split("\r\n").next().unwrap();
        assert!(head.contains("\r\nX-Id: a/b\r\n") && uuid.len() == 36, "{head}");
        assert_eq!(body, format!("{{\"n\": 0, \"note\": \"x\"y\", \"u\": \"{uuid}\", \"r\": 5}}"));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(next(&mut picker, &repertoire).starts_with("POST /%C3%A9?q=z "));
        assert!(next(&mut picker, &repertoire).starts_with("POST /a%2Fb?q="));
    }

    #[test]
    fn without_being_asked_for_braces_are_braces() {
        let plan = HttpPlan {
            method: "POST".into(),
            body: Body::Text("{\"n\": {n}}".into()),
            requests: RequestsPlan { cookies: true, ..RequestsPlan::default() },
            ..HttpPlan::default()
        };
        let repertoire = Repertoire::build(&plan, &"http://h/{n}".parse().unwrap(), "http://h/{n}").unwrap();
        let sent = next(&mut Picker::new(&repertoire, WorkerId::ONLY), &repertoire);
        assert!(sent.starts_with("POST /%7Bn%7D HTTP/1.1\r\n") && sent.ends_with("\r\n\r\n{\"n\": {n}}"), "{sent}");
    }

    #[test]
    fn cookies_go_into_requests_that_are_otherwise_fixed() {
        let plan =
            HttpPlan { requests: RequestsPlan { cookies: true, ..RequestsPlan::default() }, ..HttpPlan::default() };
        let repertoire = Repertoire::build(&plan, &"http://h/".parse().unwrap(), "http://h/").unwrap();
        let (mut picker, mut draft, mut jar) =
            (Picker::new(&repertoire, WorkerId::ONLY), Draft::default(), Jar::default());
        picker.pick(&repertoire, &mut draft, Some(&jar));
        assert!(!String::from_utf8_lossy(draft.outgoing(&repertoire).head).contains("Cookie"));
        jar.take(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\n\r\n", b"/", false);
        picker.pick(&repertoire, &mut draft, Some(&jar));
        let sent = String::from_utf8_lossy(draft.outgoing(&repertoire).head).into_owned();
        assert!(sent.ends_with("\r\nCookie: a=1\r\n\r\n"), "{sent}");
    }

    proptest! {
        #[test]
        fn strides_visit_all(total in 1u64..2000) {
            let stride = scattering_stride(total);
            let mut seen = vec![false; total as usize];
            let mut point = 0;
            for _ in 0..total {
                seen[point as usize] = true;
                point = (point + stride) % total;
            }
            prop_assert!(seen.iter().all(|&seen| seen));
        }
    }
}
