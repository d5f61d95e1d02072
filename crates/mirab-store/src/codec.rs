//! Between the values of records and the columns of tables.
use mirab_core::{ClaimId, Place, Time};
use mirab_flow::Failure;
use rusqlite::types::{FromSql, Type};
use rusqlite::{Error, Result, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::str::FromStr;

/// An unsigned number as its column holds it: bit for bit, so that no value is refused or changed. Order is kept below
/// 2^63, which is the year 2262 and more runs than will ever be.
pub(crate) fn number(value: u64) -> i64 {
    value.cast_signed()
}

/// A number to compare with. One beyond all that is stored stays beyond it.
pub(crate) fn bound(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn time(value: Time) -> i64 {
    number(value.0)
}

pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::ToSqlConversionFailure(error.into()))
}

/// Sequence number, call and time of a place, each `NULL` where there is none.
pub(crate) fn place(place: Option<Place>) -> (Option<i64>, Option<i64>, Option<i64>) {
    (
        place.map(|place| number(place.seq)),
        place.map(|place| number(place.call)),
        place.map(|place| time(place.joined_at)),
    )
}

/// Kind, message and traceback of a failure, each `NULL` where there is none.
pub(crate) fn failure(failure: Option<&Failure>) -> (Option<&str>, Option<&str>, Option<&str>) {
    (
        failure.map(|failure| failure.kind.as_str()),
        failure.map(|failure| failure.message.as_str()),
        failure.and_then(|failure| failure.traceback.as_deref()),
    )
}

/// Takes the columns of a row one after the other: a record's fields are read in the order of its table's column list.
pub(crate) struct Fields<'a, 'stmt> {
    row: &'a Row<'stmt>,
    next: usize,
}

impl<'a, 'stmt> Fields<'a, 'stmt> {
    pub(crate) fn of(row: &'a Row<'stmt>) -> Self {
        Self { row, next: 0 }
    }

    /// A value that SQLite has a type for.
    pub(crate) fn plain<T: FromSql>(&mut self) -> Result<T> {
        self.next += 1;
        self.row.get(self.next - 1)
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        Ok(self.plain::<i64>()?.cast_unsigned())
    }

    pub(crate) fn optional_number(&mut self) -> Result<Option<u64>> {
        Ok(self.plain::<Option<i64>>()?.map(i64::cast_unsigned))
    }

    pub(crate) fn id(&mut self) -> Result<ClaimId> {
        self.number().map(ClaimId)
    }

    pub(crate) fn optional_id(&mut self) -> Result<Option<ClaimId>> {
        Ok(self.optional_number()?.map(ClaimId))
    }

    pub(crate) fn time(&mut self) -> Result<Time> {
        self.number().map(Time)
    }

    pub(crate) fn optional_time(&mut self) -> Result<Option<Time>> {
        Ok(self.optional_number()?.map(Time))
    }

    /// A value that is kept as its text.
    pub(crate) fn word<T: FromStr<Err: Display>>(&mut self) -> Result<T> {
        let text: String = self.plain()?;
        text.parse().map_err(|error: T::Err| self.unreadable(error.to_string()))
    }

    pub(crate) fn optional_word<T: FromStr<Err: Display>>(&mut self) -> Result<Option<T>> {
        let text: Option<String> = self.plain()?;
        text.map(|text| text.parse()).transpose().map_err(|error: T::Err| self.unreadable(error.to_string()))
    }

    pub(crate) fn json<T: DeserializeOwned>(&mut self) -> Result<T> {
        let text: String = self.plain()?;
        serde_json::from_str(&text).map_err(|error| self.unreadable(error.to_string()))
    }

    /// `NULL` is nothing; the JSON `null` is a value.
    pub(crate) fn optional_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let text: Option<String> = self.plain()?;
        text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| self.unreadable(error.to_string()))
    }

    pub(crate) fn place(&mut self) -> Result<Place> {
        Ok(Place { seq: self.number()?, call: self.number()?, joined_at: self.time()? })
    }

    pub(crate) fn optional_place(&mut self) -> Result<Option<Place>> {
        let (seq, call, joined_at) = (self.optional_number()?, self.optional_number()?, self.optional_time()?);
        Ok(seq.zip(call).zip(joined_at).map(|((seq, call), joined_at)| Place { seq, call, joined_at }))
    }

    pub(crate) fn failure(&mut self) -> Result<Option<Failure>> {
        let (kind, message, traceback) =
            (self.plain::<Option<String>>()?, self.plain::<Option<String>>()?, self.plain()?);
        Ok(kind.zip(message).map(|(kind, message)| Failure { kind, message, traceback }))
    }

    /// The column just taken holds what this program did not write.
    fn unreadable(&self, why: String) -> Error {
        Error::FromSqlConversionFailure(self.next - 1, Type::Text, why.into())
    }
}
