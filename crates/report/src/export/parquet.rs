//! The columns in an Apache Parquet file, by way of the crate's own column writers: Arrow, which most examples use, would
//! only be a detour for one table that is already in columns.

use super::ExportError;
use super::columns::{Cell, Column, Kind, columns, rows};
use duel_model::{Run, Slot};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Level of a cell that is there, and of one that is not known.
const THERE: i16 = 1;
const UNKNOWN: i16 = 0;

/// A row group with all slots.
pub(super) fn parquet(run: &Run, only: Option<usize>) -> Result<Vec<u8>, ExportError> {
    written(run, only).map_err(|error| ExportError::Parquet(error.to_string()))
}

fn written(run: &Run, only: Option<usize>) -> Result<Vec<u8>, ParquetError> {
    let columns = columns(run.plan.schema());
    let slots: Vec<&Slot> = rows(run, only).collect();
    let fields = columns.iter().map(field).collect::<Result<Vec<TypePtr>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("slot").with_fields(fields).build()?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::builder().build()))?;
    let mut group = writer.next_row_group()?;
    let mut left = columns.iter();
    while let (Some(mut to), Some(column)) = (group.next_column()?, left.next()) {
        let cells: Vec<Cell> = slots.iter().map(|slot| column.cell(run, slot)).collect();
        let levels: Vec<i16> = cells.iter().map(|cell| if *cell == Cell::Unknown { UNKNOWN } else { THERE }).collect();
        match to.untyped() {
            ColumnWriter::Int64ColumnWriter(to) => to.write_batch(&whole(&cells), Some(&levels), None)?,
            ColumnWriter::DoubleColumnWriter(to) => to.write_batch(&figures(&cells), Some(&levels), None)?,
            ColumnWriter::ByteArrayColumnWriter(to) => to.write_batch(&texts(&cells), Some(&levels), None)?,
            _ => return Err(ParquetError::General(format!("column {} has no such type", column.name))),
        };
        to.close()?;
    }
    group.close()?;
    writer.into_inner()
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        // Counts beyond 63 bits do not occur: an exabyte in a slot would be the first.
        Kind::Whole | Kind::Signed => (Physical::INT64, None),
        Kind::Figure => (Physical::DOUBLE, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Ok(Arc::new(field.build()?))
}

fn whole(cells: &[Cell]) -> Vec<i64> {
    let value = |cell: &Cell| match cell {
        Cell::Whole(value) => Some(i64::try_from(*value).unwrap_or(i64::MAX)),
        Cell::Signed(value) => Some(*value),
        _ => None,
    };
    cells.iter().filter_map(value).collect()
}

fn figures(cells: &[Cell]) -> Vec<f64> {
    cells.iter().filter_map(|cell| if let Cell::Figure(value) = cell { Some(*value) } else { None }).collect()
}

fn texts(cells: &[Cell]) -> Vec<ByteArray> {
    let value = |cell: &Cell| if let Cell::Text(value) = cell { Some(ByteArray::from(value.as_str())) } else { None };
    cells.iter().filter_map(value).collect()
}
