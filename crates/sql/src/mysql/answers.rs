//! What the server answers to statements: columns, rows, and how many.

use super::handshake::capability;
use super::packets::{ERROR_MARK, Fields, Head, LARGEST_PAYLOAD, broken};
use super::rows::{self, Column, MOST_COLUMNS};
use super::{LOADED_NAME, MySql, Stage, errors, statements};
use crate::wire::{self, Happened, LONGEST_MESSAGE_BYTES, LONGEST_ROW_BYTES, SqlFailure};
use std::ops::Range;

/// First bytes of an answer, beside [`ERROR_MARK`] and a number of columns.
const OK_MARK: u8 = 0x00;
const FILE_MARK: u8 = 0xFB;
const END_MARK: u8 = 0xFE;
/// The old packet that ends columns or rows is shorter than this. A row that begins with the same byte is not.
const OLD_END_BYTES: usize = 9;
/// Among the flags of an answer: another one follows, which we said that we do not take.
const MORE_RESULTS: u16 = 1 << 3;
/// A transaction is open.
const IN_TRANSACTION: u16 = 1;

/// The answer that is under way.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The prepared statement that it is of; rows of others are texts.
    statement: Option<u16>,
    keeps_rows: bool,
    columns: u16,
    rows: u64,
    first_row_told: bool,
    /// The server may ask for the data of a bulk load.
    offers_data: bool,
}

impl Answer {
    /// One of which nothing has come yet.
    pub(super) fn awaited(statement: Option<u16>, keeps_rows: bool) -> Self {
        Self { statement, keeps_rows, ..Self::default() }
    }

    /// It begins a bulk load.
    pub(super) fn offer_data(&mut self) {
        self.offers_data = true;
    }
}

/// What columns are described of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Described {
    /// The parameters of a statement that is being prepared, whose answer has so many columns.
    Parameters { number: u16, columns: u16 },
    /// Its answer.
    Prepared { number: u16 },
    /// The answer that is under way.
    Answer,
}

impl MySql {
    /// The server has prepared a statement; its parameters and columns follow.
    pub(super) fn prepared(
        &mut self,
        number: u16,
        head: Head,
        place: Range<usize>,
    ) -> Result<Option<Happened>, SqlFailure> {
        if head.first != OK_MARK {
            return Err(broken("the server answers something else than that a statement is prepared"));
        }
        let (statement, columns) = statements::read_prepared(self.incoming.payload(place))?;
        let parameters = statement.parameters;
        self.statements.put(number, statement);
        Ok(self.columns_follow(Described::Parameters { number, columns }, parameters))
    }

    fn columns_follow(&mut self, of: Described, count: u16) -> Option<Happened> {
        if count == 0 {
            return self.all_described(of);
        }
        self.stage = Stage::Columns(of, count);
        None
    }

    /// A column is described, or, in a packet of its own, their end.
    #[inline]
    pub(super) fn described(
        &mut self,
        of: Described,
        left: u16,
        head: Head,
        place: Range<usize>,
    ) -> Result<Option<Happened>, SqlFailure> {
        let Some(left) = left.checked_sub(1) else {
            if head.first == END_MARK && head.length < OLD_END_BYTES {
                return Ok(self.all_described(of));
            }
            return Err(broken("the server describes more columns than it has announced"));
        };
        let column = Column::read(self.incoming.payload(place))?;
        let statement = match of {
            Described::Parameters { .. } => None,
            Described::Prepared { number } => Some(number),
            Described::Answer => self.answer.statement,
        };
        if let Some(number) = statement {
            self.statements.of(number)?.columns.push(column);
        }
        if left == 0 && self.agreed & capability::DEPRECATE_EOF != 0 {
            return Ok(self.all_described(of));
        }
        self.stage = Stage::Columns(of, left);
        Ok(None)
    }

    fn all_described(&mut self, of: Described) -> Option<Happened> {
        match of {
            Described::Parameters { number, columns } => self.columns_follow(Described::Prepared { number }, columns),
            Described::Prepared { .. } => {
                self.stage = Stage::Idle;
                Some(Happened::Prepared)
            }
            Described::Answer => {
                self.stage = Stage::Rows;
                None
            }
        }
    }

    /// The first message of an answer: all of it, or how many columns it has.
    #[inline]
    pub(super) fn answered(&mut self, head: Head, place: Range<usize>) -> Result<Option<Happened>, SqlFailure> {
        let mut fields = Fields(self.incoming.payload(place));
        match head.first {
            OK_MARK => {
                let end = read_end(fields)?;
                return Ok(Some(self.done(end)));
            }
            // Once, and under the name that our own statement has given: what follows is no file.
            FILE_MARK if fields.0[1..] == *LOADED_NAME.as_bytes() && std::mem::take(&mut self.answer.offers_data) => {
                self.stage = Stage::Data;
                return Ok(Some(Happened::WantsData));
            }
            FILE_MARK => {
                // An empty message says that there is no such file.
                self.answer_with(|_| {});
                return Err(broken("the server asks for a file of this machine; it gets none"));
            }
            _ => {}
        }
        let columns = fields.number()?;
        if columns == 0 || columns > MOST_COLUMNS {
            return Err(broken(format!("the server says that an answer has {columns} columns")));
        }
        let columns = columns as u16;
        let follow = self.agreed & capability::CACHE_METADATA == 0 || fields.byte()? != 0;
        if !fields.0.is_empty() {
            return Err(broken("the server announces columns by a message that is too long"));
        }
        self.answer.columns = columns;
        if follow {
            if let Some(number) = self.answer.statement {
                self.statements.of(number)?.columns.clear();
            }
            return Ok(self.columns_follow(Described::Answer, columns));
        }
        let known = match self.answer.statement {
            Some(number) => self.statements.of(number)?.columns.len(),
            None => 0,
        };
        if known != usize::from(columns) {
            return Err(broken(format!("the server describes none of {columns} columns, of which {known} are known")));
        }
        self.stage = Stage::Rows;
        Ok(None)
    }

    /// Goes on with rows: one that is wanted, or all that are there.
    #[inline]
    pub(super) fn rows(&mut self) -> Result<Option<Happened>, SqlFailure> {
        loop {
            if !self.incoming.row_is_passed()? {
                return Ok(None);
            }
            let Some(head) = self.incoming.head()? else { return Ok(None) };
            match head.first {
                ERROR_MARK => {
                    let Some(place) = self.incoming.whole(head, LONGEST_MESSAGE_BYTES)? else { return Ok(None) };
                    return self.refused(place);
                }
                END_MARK if head.length < self.longest_end() => return self.rows_over(head),
                first if first != 0 && self.answer.statement.is_some() => {
                    return Err(broken(format!("a row of the server begins with {first:#04x}")));
                }
                _ => {}
            }
            if !self.answer.first_row_told {
                self.answer.first_row_told = true;
                return Ok(Some(Happened::FirstRow));
            }
            if !self.answer.keeps_rows {
                self.incoming.pass_row(head);
                self.answer.rows += 1;
                continue;
            }
            let Some(place) = self.incoming.whole(head, LONGEST_ROW_BYTES)? else { return Ok(None) };
            let row = self.incoming.payload(place);
            match self.answer.statement {
                Some(number) => rows::read_binary(row, &self.statements.of(number)?.columns, &mut self.row)?,
                None => rows::read_texts(row, self.answer.columns.into(), &mut self.row)?,
            }
            self.answer.rows += 1;
            return Ok(Some(Happened::Row));
        }
    }

    /// A packet with the mark of the end that has so many bytes is a row: the mark is that of a long text, too.
    #[inline]
    fn longest_end(&self) -> usize {
        match self.agreed & capability::DEPRECATE_EOF {
            0 => OLD_END_BYTES,
            _ => LARGEST_PAYLOAD,
        }
    }

    #[inline]
    fn rows_over(&mut self, head: Head) -> Result<Option<Happened>, SqlFailure> {
        let Some(place) = self.incoming.whole(head, LONGEST_MESSAGE_BYTES)? else { return Ok(None) };
        let message = self.incoming.payload(place);
        let end = match self.agreed & capability::DEPRECATE_EOF {
            0 => read_old_end(Fields(message))?,
            _ => read_end(Fields(message))?,
        };
        Ok(Some(self.done(end)))
    }

    /// The server has refused the statement, and may end the connection with it.
    pub(super) fn refused(&mut self, place: Range<usize>) -> Result<Option<Happened>, SqlFailure> {
        let error = errors::read(self.incoming.payload(place))?;
        if error.ends_connection() {
            return Err(error.at_statement());
        }
        self.stage = Stage::Idle;
        Ok(Some(Happened::Refused(error.at_statement())))
    }

    #[inline]
    fn done(&mut self, end: End) -> Happened {
        self.stage = Stage::Idle;
        self.is_in_transaction = end.is_in_transaction;
        Happened::Done { rows: self.answer.rows, affected: end.affected }
    }
}

/// What the end of an answer tells.
struct End {
    affected: u64,
    is_in_transaction: bool,
}

impl End {
    fn of(affected: u64, flags: u16) -> Result<Self, SqlFailure> {
        match flags & MORE_RESULTS {
            0 => Ok(Self { affected, is_in_transaction: flags & IN_TRANSACTION != 0 }),
            _ => Err(broken("the server sends several answers to one statement")),
        }
    }
}

/// The message that ends an answer: how many rows were changed.
#[inline]
fn read_end(mut fields: Fields<'_>) -> Result<End, SqlFailure> {
    fields.byte()?;
    let affected = wire::changed(fields.number()?)?;
    fields.number()?; // the last number that was given to a row
    End::of(affected, fields.two()?)
}

/// As [`read_end`], in the form that is older than `DEPRECATE_EOF`.
fn read_old_end(mut fields: Fields<'_>) -> Result<End, SqlFailure> {
    fields.byte()?;
    fields.two()?; // warnings
    End::of(0, fields.two()?)
}
