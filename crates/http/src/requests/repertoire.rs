//! All requests that ops choose from, ready to be sent: in one piece of memory, however many they are.
//!
//! A request without variables is kept as the bytes that go over the wire. One with variables is kept as its parts, and
//! [`crate::requests::picker`] puts them together for each op.

use crate::requests::body::read_body;
use crate::requests::place::{self, Place};
use crate::requests::request::{Common, announces_length, checked_token, is_idempotent, path_and_query};
use crate::requests::sigv4::{self, Keys, Scope};
use crate::requests::{Entry, EntryBody, Listed, authority_and_target, target_of};
use duel_load::WorkloadError;
use duel_model::{HttpPlan, RequestOrder, sanitize_line};
use duel_template::{Columns, Part, Rows, Variable};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use url::Url;

/// Most bytes of all requests together.
const ARENA_LIMIT_BYTES: usize = 2 << 30;
/// A body up to this length lies right behind its head, so that both leave in one call.
pub(crate) const SHORT_BODY_BYTES: usize = 16 * 1024;

/// Fields that a signature brings.
const SIGNED: [&str; 4] = ["Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"];

/// The requests of a target.
#[derive(Debug)]
pub(crate) struct Repertoire {
    pub(crate) arena: Vec<u8>,
    pub(crate) items: Vec<Item>,
    pub(crate) pieces: Vec<Piece>,
    /// Sums of weights up to and with each item; empty where all weights are the same.
    pub(crate) cumulative: Vec<u64>,
    /// Sum of all weights, or the number of items where all are the same.
    pub(crate) total: u64,
    pub(crate) is_random: bool,
    pub(crate) seed: u64,
    pub(crate) rows: Option<Rows>,
    pub(crate) signer: Option<(Keys, Scope)>,
    /// SHA-256 of each item's body where requests are signed; empty otherwise.
    pub(crate) body_hashes: Vec<String>,
    /// How far the ops of earlier slots and sessions have come.
    pub(crate) progress: Mutex<Progress>,
    may_write: bool,
    /// What is worth a word to the user.
    note: Option<String>,
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    /// Head of a request that stays as it is, with the empty line at its end.
    pub(crate) head: Span,
    /// Body that stays as it is; right behind the head where it is short.
    pub(crate) body: Span,
    /// Among the pieces: the head where it has variables, without the empty line at its end.
    pub(crate) head_pieces: Span,
    /// Among the pieces: the body where it has variables.
    pub(crate) body_pieces: Span,
    pub(crate) is_head: bool,
    pub(crate) is_idempotent: bool,
    /// A body of length 0 is announced as well.
    pub(crate) announces_empty: bool,
}

/// From and to; arenas are smaller than 4 GiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// A part of a request with variables.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Piece {
    Text(Span),
    Variable(Variable, Place),
}

/// Where the next session goes on.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The first number that no op has had.
    pub(crate) next_number: u64,
    /// Ops that each worker has begun.
    pub(crate) begun: Vec<u64>,
    /// Requests that the first contact has sent, from the list's beginning on. They are behind all workers.
    pub(crate) contacted: u64,
    /// Ops after which each worker begins anew with what it sent first; `None`: it goes on.
    pub(crate) round: Option<u64>,
}

impl Repertoire {
    /// Whether a plan needs one: otherwise all its ops send the same bytes.
    pub(crate) fn is_needed(plan: &HttpPlan) -> bool {
        let requests = &plan.requests;
        let is_signed = matches!(requests.auth, Some(duel_model::AuthPlan::AwsSigV4 { .. }));
        requests.differ() || requests.cookies || is_signed
    }

    /// Reads the plan's files and prepares all requests for a target. `address` is the target's as it was typed, since an
    /// address that was parsed has its braces encoded.
    pub(crate) fn build(plan: &HttpPlan, url: &Url, address: &str) -> Result<Self, WorkloadError> {
        let requests = &plan.requests;
        let rows = requests.data_file.as_deref().map(Rows::read).transpose()?;
        let listed = requests.source.as_ref().map(Listed::read).transpose()?;
        let common = Common::read(plan, url)?;
        let mut builder = Builder {
            plan,
            common,
            rows: rows.as_ref(),
            arena: Vec::new(),
            items: Vec::new(),
            pieces: Vec::new(),
            may_write: false,
            plans_body: None,
            plans_body_pieces: None,
            shared_bodies: HashMap::new(),
        };
        let mut weights = Vec::new();
        match &listed {
            None => {
                let target = match authority_and_target(address).filter(|_| requests.is_template) {
                    Some((_, target)) => target.to_owned(),
                    None => path_and_query(url),
                };
                builder.add(&target, None)?;
                weights.push(1);
            }
            Some(listed) => {
                if url.query().is_some() {
                    return Err(WorkloadError(
                        "the target's address has a query; with a list of requests it is what stands before their \
                         paths, such as http://host/ or http://host/base"
                            .into(),
                    ));
                }
                let base = url.path().trim_end_matches('/');
                for entry in &listed.entries {
                    let target = format!("{base}{}", rooted(target_of(&entry.address)));
                    builder.add(&target, Some(entry)).map_err(|error| listed.flaw(entry, &error.0))?;
                    weights.push(entry.weight);
                }
            }
        }
        let Builder { mut arena, items, mut pieces, common, may_write, .. } = builder;
        arena.shrink_to_fit();
        pieces.shrink_to_fit();
        let signer = common.signer;
        let hash_of = |item: &Item| match item.body_pieces.is_empty() {
            true => sigv4::hash(&arena[item.body.range()]),
            false => String::new(),
        };
        let body_hashes = if signer.is_some() { items.iter().map(hash_of).collect() } else { Vec::new() };
        let (cumulative, total) = cumulated(&weights);
        let note = listed.as_ref().and_then(Listed::note);
        Ok(Self {
            arena,
            items,
            pieces,
            cumulative,
            total,
            is_random: requests.order == RequestOrder::Random,
            seed: requests.seed,
            rows,
            signer,
            body_hashes,
            progress: Mutex::default(),
            may_write,
            note,
        })
    }

    /// What is worth a word to the user about the files.
    pub(crate) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The head of each request that stays as it is; `None` for one that is put together for each op.
    pub(crate) fn fixed_heads(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let is_fixed = |item: &&Item| item.head_pieces.is_empty() && item.body_pieces.is_empty();
        self.items.iter().map(move |item| Some(item).filter(is_fixed).map(|item| &self.arena[item.head.range()]))
    }

    /// Ops after which each request of a list, and each row of values, was sent as often as any other. `None` where all
    /// send the same, or what is sent is drawn or spread evenly anyhow.
    pub(crate) fn round_ops(&self) -> Option<u64> {
        let listed = if self.is_random || !self.cumulative.is_empty() { 1 } else { self.total };
        let rows = self.rows.as_ref().map_or(1, |rows| rows.len() as u64);
        Some(listed.max(rows)).filter(|&ops| ops > 1)
    }

    /// The next op goes on as if each of the workers had begun so many ops: what they sent is not sent again, as far as a
    /// list, or what is drawn, allows it.
    pub(crate) fn go_on_after(&self, begun: u64, workers: u64) {
        let mut progress = self.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        progress.next_number += begun.saturating_mul(workers);
        progress.begun = vec![begun; workers as usize];
    }

    /// What each worker sends first, so many ops, is sent again and again: also by sessions to come, as if nothing had been sent before them.
    pub(crate) fn go_round_in(&self, ops: u64) {
        let mut progress = self.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        progress.round = Some(ops.max(1));
    }

    /// Whether a request may change something on the server.
    pub(crate) fn may_write(&self) -> bool {
        self.may_write
    }

    /// The first contact is over. Workers to come go on behind what it has sent, whichever their parts of the list are: what it
    /// has sent once is sent again only when the list has been gone through.
    pub(crate) fn leave_contact_behind(&self) {
        let mut progress = self.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        progress.contacted += progress.begun.drain(..).sum::<u64>();
    }
}

/// A path with a slash in front, also where there is only a query.
fn rooted(target: &str) -> std::borrow::Cow<'_, str> {
    if target.starts_with('/') { target.into() } else { format!("/{target}").into() }
}

/// Sums of weights up to and with each item; none where all are the same, and then each counts once.
fn cumulated(weights: &[u32]) -> (Vec<u64>, u64) {
    if weights.iter().all(|weight| *weight == weights[0]) {
        return (Vec::new(), weights.len() as u64);
    }
    let mut total = 0;
    let sums = weights.iter().map(|&weight| {
        total += u64::from(weight);
        total
    });
    (sums.collect(), total)
}

struct Builder<'a> {
    plan: &'a HttpPlan,
    common: Common<'a>,
    rows: Option<&'a Rows>,
    arena: Vec<u8>,
    items: Vec<Item>,
    pieces: Vec<Piece>,
    /// One of them has a method that is not safe.
    may_write: bool,
    plans_body: Option<Span>,
    /// Where it has variables; none in them, where it has none.
    plans_body_pieces: Option<Span>,
    /// Bodies from files that are there already.
    shared_bodies: HashMap<PathBuf, Span>,
}

/// A body of a request that is being added.
enum Content<'a> {
    Bytes(&'a [u8]),
    Shared(Span),
}

impl Builder<'_> {
    /// Adds the request for a path with its query; `None`: the plan's own.
    fn add(&mut self, target: &str, entry: Option<&Entry>) -> Result<(), WorkloadError> {
        let method = entry.and_then(|entry| entry.method.as_deref()).unwrap_or(self.common.method).to_owned();
        let method = checked_token(&method, "method")?;
        self.may_write |= !duel_model::is_safe_method(method);
        let headers = self.headers(entry)?;
        let content = match entry.map_or(&EntryBody::OfPlan, |entry| &entry.body) {
            EntryBody::OfPlan => Content::Shared(self.plans_body()?),
            EntryBody::Bytes(bytes) => Content::Bytes(bytes),
            EntryBody::File(path) => Content::Shared(self.shared(path)?),
        };
        let is_plans = matches!(entry.map(|entry| &entry.body), None | Some(EntryBody::OfPlan));
        let body_pieces = match self.plans_body_pieces.filter(|_| is_plans) {
            Some(pieces) => pieces,
            None => self.body_pieces(&content)?,
        };
        if is_plans {
            self.plans_body_pieces = Some(body_pieces);
        }
        let length = match &content {
            _ if !body_pieces.is_empty() => None,
            Content::Bytes(bytes) => Some(bytes.len()),
            Content::Shared(span) => Some(span.range().len()),
        };
        let fields = self.common.fields(method, &headers, length)?;
        let mut item = Item {
            head: Span::default(),
            body: Span::default(),
            head_pieces: Span::default(),
            body_pieces,
            is_head: method == "HEAD",
            is_idempotent: is_idempotent(method),
            announces_empty: announces_length(method, 0),
        };
        item.head_pieces = self.head_pieces(method, target, &fields, !body_pieces.is_empty())?;
        if item.head_pieces.is_empty() {
            item.head = self.fixed_head(method, target, &fields)?;
        }
        if body_pieces.is_empty() {
            item.body = match content {
                Content::Bytes(bytes) => self.push(|arena| arena.extend_from_slice(bytes))?,
                // Once more right behind the head: less than a page, and one call less for each op.
                Content::Shared(span) if span.range().len() <= SHORT_BODY_BYTES && item.head_pieces.is_empty() => {
                    self.push(|arena| arena.extend_from_within(span.range()))?
                }
                Content::Shared(span) => span,
            };
        }
        self.items.push(item);
        Ok(())
    }

    /// The plan's header fields, and those of the entry in their place where they have the same name.
    fn headers(&self, entry: Option<&Entry>) -> Result<Vec<(String, String)>, WorkloadError> {
        let own = entry.map_or(&[][..], |entry| &entry.headers);
        let is_named =
            |fields: &[(String, String)], name: &str| fields.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        let is_recording =
            self.plan.requests.source.as_ref().is_some_and(|source| source.format == duel_model::RequestFormat::Har);
        let is_signed = self.common.signer.is_some();
        if let Some(name) = SIGNED.iter().find(|name| is_signed && is_named(&self.plan.headers, name)) {
            return Err(WorkloadError(format!("{name} is a part of the signature; leave it out")));
        }
        // What another connection was sent, or another signature, is not for this one.
        let replaces = |name: &str| {
            name.eq_ignore_ascii_case("cookie") && self.plan.requests.cookies
                || is_signed && SIGNED.iter().any(|signed| name.eq_ignore_ascii_case(signed))
        };
        if self.plan.requests.cookies && is_named(own, "Cookie") && !is_recording {
            return Err(WorkloadError(
                "it has a Cookie field of its own, which --cookies would send a second time".into(),
            ));
        }
        let plans = self.plan.headers.iter().filter(|(name, _)| !is_named(own, name));
        Ok(plans.chain(own.iter().filter(|(name, _)| !replaces(name))).cloned().collect())
    }

    /// The plan's body, once for all requests.
    fn plans_body(&mut self) -> Result<Span, WorkloadError> {
        if let Some(span) = self.plans_body {
            return Ok(span);
        }
        let start = self.arena.len();
        let arena = std::mem::take(&mut self.arena);
        self.arena = self.common.body.append_to(arena)?;
        let span = self.span_from(start)?;
        self.plans_body = Some(span);
        Ok(span)
    }

    /// The content of a body's file, once for all requests that have it.
    fn shared(&mut self, path: &Path) -> Result<Span, WorkloadError> {
        if let Some(span) = self.shared_bodies.get(path) {
            return Ok(*span);
        }
        let start = self.arena.len();
        let arena = std::mem::take(&mut self.arena);
        self.arena = read_body(path, arena)?;
        let span = self.span_from(start)?;
        self.shared_bodies.insert(path.to_owned(), span);
        Ok(span)
    }

    fn fixed_head(&mut self, method: &str, target: &str, fields: &[(String, String)]) -> Result<Span, WorkloadError> {
        let before = self.common.before_target();
        self.push(|arena| {
            // Writing to a Vec cannot fail.
            let _ = write!(arena, "{method} {before}");
            place::push_address(arena, target);
            arena.extend_from_slice(b" HTTP/1.1\r\n");
            for (name, value) in fields {
                let _ = write!(arena, "{name}: {value}\r\n");
            }
            arena.extend_from_slice(b"\r\n");
        })
    }

    /// The head in pieces, if it has variables or has to be put together because the body has.
    fn head_pieces(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(String, String)],
        body_varies: bool,
    ) -> Result<Span, WorkloadError> {
        if !self.plan.requests.is_template {
            return Ok(Span::default());
        }
        // A brace that was doubled is one in what is sent: then the text is not sent as it was typed.
        let has_doubled = target.contains("{{") || fields.iter().any(|(_, value)| value.contains("{{"));
        let target = self.parse(target)?;
        let values = fields.iter().map(|(_, value)| self.parse(value)).collect::<Result<Vec<_>, _>>()?;
        let varies = |parts: &Vec<Part>| parts.iter().any(|part| matches!(part, Part::Variable(_)));
        if !body_varies && !has_doubled && !varies(&target) && !values.iter().any(varies) {
            return Ok(Span::default());
        }
        let start = self.pieces.len();
        self.text_piece(format!("{method} {}", self.common.before_target()).as_bytes())?;
        self.parts(&target, Place::Address)?;
        self.text_piece(b" HTTP/1.1\r\n")?;
        for ((name, _), parts) in fields.iter().zip(&values) {
            self.text_piece(format!("{name}: ").as_bytes())?;
            self.parts(parts, Place::Field)?;
            self.text_piece(b"\r\n")?;
        }
        Ok(self.pieces_from(start))
    }

    /// The body in pieces, if it has variables.
    fn body_pieces(&mut self, content: &Content<'_>) -> Result<Span, WorkloadError> {
        if !self.plan.requests.is_template {
            return Ok(Span::default());
        }
        let bytes = match content {
            Content::Bytes(bytes) => bytes.to_vec(),
            Content::Shared(span) => self.arena[span.range()].to_vec(),
        };
        // What is no text has no variables.
        let Ok(text) = String::from_utf8(bytes) else { return Ok(Span::default()) };
        let parts = self.parse(&text)?;
        if matches!(parts.as_slice(), [] | [Part::Text(_)]) && !text.contains("{{") {
            return Ok(Span::default());
        }
        let start = self.pieces.len();
        self.parts(&parts, Place::Body)?;
        Ok(self.pieces_from(start))
    }

    fn parse(&self, text: &str) -> Result<Vec<Part>, WorkloadError> {
        let none = Columns::default();
        duel_template::parse(text, self.rows.map_or(&none, Rows::columns)).map_err(WorkloadError)
    }

    fn parts(&mut self, parts: &[Part], place: Place) -> Result<(), WorkloadError> {
        for part in parts {
            match part {
                Part::Text(text) if place == Place::Address => {
                    let span = self.push(|arena| place::push_address(arena, text))?;
                    self.pieces.push(Piece::Text(span));
                }
                Part::Text(text) => self.text_piece(text.as_bytes())?,
                Part::Variable(variable) => {
                    if let (Variable::Column(column), Place::Field, Some(rows)) = (variable, place, self.rows) {
                        rows.check_for_field(*column)?;
                    }
                    self.pieces.push(Piece::Variable(*variable, place));
                }
            }
        }
        Ok(())
    }

    fn text_piece(&mut self, text: &[u8]) -> Result<(), WorkloadError> {
        let span = self.push(|arena| arena.extend_from_slice(text))?;
        self.pieces.push(Piece::Text(span));
        Ok(())
    }

    fn pieces_from(&self, start: usize) -> Span {
        Span { start: start as u32, end: self.pieces.len() as u32 }
    }

    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<Span, WorkloadError> {
        let start = self.arena.len();
        write(&mut self.arena);
        self.span_from(start)
    }

    fn span_from(&self, start: usize) -> Result<Span, WorkloadError> {
        let end = self.arena.len();
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) if self.arena.len() <= ARENA_LIMIT_BYTES => Ok(Span { start, end }),
            _ => Err(WorkloadError(format!(
                "all requests together have more than {} GiB, which is the most",
                ARENA_LIMIT_BYTES >> 30
            ))),
        }
    }
}

impl Listed {
    /// That requests of a recording were left out.
    fn note(&self) -> Option<String> {
        let origin = sanitize_line(self.origin.as_deref()?);
        (self.left_out > 0).then(|| {
            let all = self.entries.len() + self.left_out;
            format!(
                "{}: {} of {all} requests go to other hosts than {origin} and are left out",
                self.name, self.left_out
            )
        })
    }
}
