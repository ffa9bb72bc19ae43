//! `/logs`: the event logs of an application as a zip archive.

use super::errors::Failure;
use crate::{History, LogFile};
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use tokio_util::io::ReaderStream;
use zip::write::SimpleFileOptions;

/// All attempts of an application, or one.
pub(super) fn archive(history: &dyn History, id: &str, attempt: Option<&str>) -> Result<Response, Failure> {
    let listed = history.list();
    let of_id = listed.iter().filter(|l| l.id == id && (attempt.is_none() || l.attempt.as_deref() == attempt));
    let files: Result<Vec<Vec<LogFile>>, String> =
        of_id.filter_map(|l| history.log_files(id, l.attempt.as_deref())).collect();
    let files: Vec<LogFile> = files.map_err(|why| Failure::internal(&why))?.into_iter().flatten().collect();
    if files.is_empty() {
        return Err(Failure::no_such_app(id, attempt));
    }
    let file = packed(files).map_err(|error| Failure::internal(&format!("packing the logs of {id}: {error}")))?;
    let name = match attempt {
        Some(attempt) => format!("eventLogs-{id}-{attempt}.zip"),
        None => format!("eventLogs-{id}.zip"),
    };
    // An id comes from a log, where anything may stand.
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    let stream = ReaderStream::new(tokio::fs::File::from_std(file));
    Ok((headers, Body::from_stream(stream)).into_response())
}

/// An archive in a file that nobody else sees.
fn packed(files: Vec<LogFile>) -> std::io::Result<File> {
    let mut zip = zip::ZipWriter::new(tempfile::tempfile()?);
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated).large_file(true);
    for mut file in files {
        zip.start_file(file.name, options)?;
        std::io::copy(&mut file.content, &mut zip)?;
    }
    let mut file = zip.finish()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}
