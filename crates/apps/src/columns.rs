//! Columns of CSV files: where they are, and their fields row by row.

use csv::ByteRecord;
use gristmill::{Source, Split};

use crate::error::{Error, Result};
use crate::matrix::number;

/// A column of a CSV file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// By its place, from 1.
    Number(usize),
    /// By its name in the first line.
    Name(String),
}

/// Some columns of CSV files, which all have the same.
pub(crate) struct Table<const N: usize> {
    /// Places of the columns, from 0.
    pub places: [usize; N],
    /// The first line of every file is a header: a column is asked for by its name, or no field is a number.
    header: bool,
    /// The first row of the first file that has any.
    pub first: Option<ByteRecord>,
}

/// What is wrong with a field: the number of its column among those asked for, and why.
pub(crate) type Fault = (usize, String);

impl<const N: usize> Table<N> {
    /// Looks at the first lines of all files. `None` if all are empty.
    pub fn look(sources: &[Source], wanted: &[Column; N]) -> Result<Option<Self>> {
        let mut found: Option<Self> = None;
        for source in sources.iter().filter(|source| source.bytes > 0) {
            let failed = |error: &dyn std::fmt::Display| Error::file(&source.name, error);
            let file = source.open().map_err(|error| failed(&error))?;
            let mut rows = reader(file).into_byte_records();
            let Some(first) = rows.next().transpose().map_err(|error| failed(&error))? else { continue };
            let by_name = wanted.iter().any(|column| matches!(column, Column::Name(_)));
            let header = by_name || first.iter().all(|field| number(field).is_none());
            let mut places = [0; N];
            for (place, column) in places.iter_mut().zip(wanted) {
                *place = place_of(column, &first).map_err(|why| failed(&why))?;
            }
            match &found {
                None => {
                    let first =
                        if header { rows.next().transpose().map_err(|error| failed(&error))? } else { Some(first) };
                    found = Some(Table { places, header, first });
                }
                Some(before) if before.places == places && before.header == header => {}
                Some(_) => return Err(failed(&"its first line differs from that of the files before")),
            }
        }
        Ok(found)
    }

    /// Calls `take` with the fields of each row of a split, and rejects the first one that is not as it should be.
    pub fn for_each_row(
        &self,
        split: &mut Split<'_>,
        mut take: impl FnMut([&[u8]; N]) -> std::result::Result<(), Fault>,
    ) {
        let text = split.bytes();
        let is_header = self.header && split.offset() == 0;
        let skip = if is_header { split.records().nth(1).map_or(text.len(), |(at, _)| at) } else { 0 };
        if let Err((at, why)) = self.rows(text, skip, &mut take) {
            split.reject(at, why);
        }
    }

    /// The same for the text behind `skip`; where it is wrong and why.
    fn rows(
        &self,
        text: &[u8],
        skip: usize,
        take: &mut impl FnMut([&[u8]; N]) -> std::result::Result<(), Fault>,
    ) -> std::result::Result<(), (usize, String)> {
        let mut reader = reader(&text[skip..]);
        let mut row = ByteRecord::new();
        loop {
            let before = skip + reader.position().byte() as usize;
            if !reader.read_byte_record(&mut row).map_err(|error| (before, error.to_string()))? {
                return Ok(());
            }
            let at = || skip + row.position().map_or(0, |position| position.byte() as usize);
            let mut fields: [&[u8]; N] = [&[]; N];
            for (field, place) in fields.iter_mut().zip(self.places) {
                *field = row
                    .get(place)
                    .ok_or_else(|| (at(), format!("there is no column {}, only {}", place + 1, row.len())))?;
            }
            take(fields).map_err(|(column, why)| (at(), format!("column {}: {why}", self.places[column] + 1)))?;
        }
    }
}

fn reader<R: std::io::Read>(from: R) -> csv::Reader<R> {
    csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(from)
}

/// The place of a column, from 0, in files with this first line.
fn place_of(column: &Column, first: &ByteRecord) -> std::result::Result<usize, String> {
    match column {
        Column::Number(number) if (1..=first.len()).contains(number) => Ok(number - 1),
        Column::Number(number) => Err(format!("there is no column {number}: the first line has {}", first.len())),
        Column::Name(name) => first.iter().position(|field| field.trim_ascii() == name.as_bytes()).ok_or_else(|| {
            let names: Vec<_> = first.iter().map(String::from_utf8_lossy).collect();
            format!("there is no column {name:?}; the first line says {}", names.join(", "))
        }),
    }
}
