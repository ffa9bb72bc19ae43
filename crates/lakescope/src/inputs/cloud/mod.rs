//! Objects in a bucket: `s3://`, `abfss://` and `gs://` addresses.
//!
//! Credentials come from the variables that each provider's own tools read (`AWS_*`, `AZURE_*`,
//! `GOOGLE_*`), or from the machine's role. Objects are streamed in pieces, a few ahead of the
//! reader; each piece is asked for again when its connection breaks.

mod address;
mod open;
mod pieces;
mod trouble;

use super::{Findings, Place, in_place, single};
pub use address::Address;

use address::Provider;
use anyhow::{Context, Error, Result, bail};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use pieces::{Object, Pieces};
use read::source::{Entry, Part};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use trouble::explained;

/// Objects below a prefix that are looked at.
const MAX_OBJECTS: usize = 200_000;
/// How long a question (is it there, what is below it) may take with all its repetitions.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// What some of Hadoop's clients put in place of a folder.
const FOLDER_MARK: &str = "_$folder$";

pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    /// `s3://bucket`, for messages.
    root: String,
    /// What listed paths are relative to; with a slash at its end unless empty.
    below: String,
}

/// What is below a prefix.
struct Listing {
    entries: Vec<Entry>,
    /// Whether that is all.
    whole: bool,
}

/// Finds the logs at an address: one object, or all below a prefix.
pub fn find(address: &str, as_text: bool) -> Result<Findings> {
    let address = Address::parse(address)?;
    let bucket = Bucket::open(&address)?;
    let mut refused = None;
    if !address.folder {
        match bucket.size(&address.path) {
            Ok(Some(size)) => return single(&bucket, address.path.as_ref(), Some(size), as_text),
            Ok(None) => {}
            // Whoever may only list a folder may not ask for the object of its name. And this
            // answer has no body: that of the listing says why.
            Err(error) if trouble::refused(&error) => refused = Some(error),
            Err(error) => return Err(explained(&address, &error)),
        }
    }
    bucket.folder(&address, refused)
}

/// The objects below an address that is looked at again and again.
#[cfg(feature = "serve")]
pub fn folder(address: &str) -> Result<(Bucket, Address)> {
    let address = Address::parse(address)?;
    let mut bucket = Bucket::open(&address)?;
    let path = address.path.as_ref();
    bucket.below = if path.is_empty() { String::new() } else { format!("{path}/") };
    Ok((bucket, address))
}

impl Bucket {
    fn open(address: &Address) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let store = open::open(address, &runtime).map_err(|error| explained(address, &error))?;
        Ok(Self { store, runtime: Arc::new(runtime), root: address.root.clone(), below: String::new() })
    }

    /// The objects below it with the time of their last change, epoch ms.
    ///
    /// # Errors
    /// When the bucket does not answer, or refuses.
    #[cfg(feature = "serve")]
    pub fn stats(&self, address: &Address) -> Result<Vec<(Entry, i64)>> {
        Ok(self.stats_up_to(address, MAX_OBJECTS)?.0)
    }

    /// The same of `most` objects, and whether those are all.
    ///
    /// # Errors
    /// When the bucket does not answer, or refuses.
    #[cfg(feature = "serve")]
    pub fn stats_up_to(&self, address: &Address, most: usize) -> Result<(Vec<(Entry, i64)>, bool)> {
        let path = &address.path;
        let mut objects = self.store.list((!path.as_ref().is_empty()).then_some(path));
        let (mut stats, mut is_whole) = (Vec::new(), true);
        while let Some(object) = self.ask(objects.try_next()).map_err(|error| unlisted(address, &error))? {
            if stats.len() == most {
                is_whole = false;
                break;
            }
            if let Some(path) = object.location.as_ref().strip_prefix(self.below.as_str()) {
                let entry = Entry { path: path.to_owned(), size: Some(object.size) };
                stats.push((entry, object.last_modified.timestamp_millis()));
            }
        }
        stats.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        Ok((stats, is_whole))
    }

    /// Names of the objects in a folder below the address, from the one behind `after` on. They come
    /// in their order: it ends at the first that begins with no digit.
    ///
    /// # Errors
    /// When the bucket does not answer, or refuses, or has more than are looked at.
    #[cfg(all(feature = "serve", target_os = "linux"))]
    pub fn names_after(&self, address: &Address, folder: &str, after: Option<&str>) -> Result<Vec<String>> {
        let prefix = address.path.clone().join(folder);
        let mut objects = match after {
            Some(after) => self.store.list_with_offset(Some(&prefix), &prefix.clone().join(after)),
            None => self.store.list(Some(&prefix)),
        };
        let mut names = Vec::new();
        while let Some(object) = self.ask(objects.try_next()).map_err(|error| unlisted(address, &error))? {
            let name =
                object.location.as_ref().strip_prefix(prefix.as_ref()).unwrap_or_default().trim_start_matches('/');
            if !name.starts_with(|c: char| c.is_ascii_digit()) {
                break;
            }
            if names.len() == MAX_OBJECTS {
                bail!("cannot list {}: it has more than {MAX_OBJECTS} objects in {folder}", address.given);
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }

    /// All of an object below the address; `None`: there is none of this name, or it is longer.
    ///
    /// # Errors
    /// When the bucket does not answer, or refuses.
    #[cfg(all(feature = "serve", target_os = "linux"))]
    pub fn bytes(&self, address: &Address, path: &str, most: u64) -> Result<Option<bytes::Bytes>> {
        let path = path.split('/').fold(address.path.clone(), |path, part| path.join(part));
        let got = self.ask(async {
            let got = self.store.get(&path).await?;
            match got.meta.size > most {
                true => Ok(None),
                false => got.bytes().await.map(Some),
            }
        });
        match got {
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            got => got.map_err(|error| explained(address, &error)),
        }
    }

    /// The logs below the address. `refused` is the answer to whether it is an object.
    fn folder(mut self, address: &Address, refused: Option<object_store::Error>) -> Result<Findings> {
        let path = address.path.as_ref();
        self.below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let listing = self.list(&address.path, MAX_OBJECTS).map_err(|error| unlisted(address, &error))?;
        if listing.entries.is_empty() {
            return Err(refused.map_or_else(|| nothing(address), |error| explained(address, &error)));
        }
        let mut all = in_place(&self, &listing.entries);
        if !listing.whole {
            all.warnings.push(format!(
                "only the first {} objects at {} are looked at; name a folder further down",
                model::Count(MAX_OBJECTS as u64),
                address.given
            ));
        }
        if all.found.is_empty() {
            let why = all.skipped.first().map(|(name, why)| format!("; {name} {why}")).unwrap_or_default();
            bail!("no event log at {}: none of {} objects is one{why}", address.given, listing.entries.len());
        }
        Ok(all)
    }

    /// Size of an object; `None` when there is none of this name.
    fn size(&self, path: &Path) -> object_store::Result<Option<u64>> {
        match self.ask(self.store.head(path)) {
            Ok(about) => Ok(Some(about.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The objects below a prefix by name, `most` at most.
    fn list(&self, prefix: &Path, most: usize) -> object_store::Result<Listing> {
        let mut objects = self.store.list((!prefix.as_ref().is_empty()).then_some(prefix));
        let mut listing = Listing { entries: Vec::new(), whole: true };
        while let Some(object) = self.ask(objects.try_next())? {
            if listing.entries.len() == most {
                listing.whole = false;
                break;
            }
            if let Some(path) = object.location.as_ref().strip_prefix(self.below.as_str()) {
                listing.entries.push(Entry { path: path.to_owned(), size: Some(object.size) });
            }
        }
        listing.entries.sort_by(|a, b| a.path.cmp(&b.path));
        drop_folder_marks(&mut listing.entries);
        Ok(listing)
    }

    /// Waits for an answer, though not for ever.
    fn ask<T>(&self, question: impl Future<Output = object_store::Result<T>>) -> object_store::Result<T> {
        let answer = async { tokio::time::timeout(ANSWER_WITHIN, question).await };
        self.runtime.block_on(answer).unwrap_or_else(|_| Err(trouble::silence(ANSWER_WITHIN)))
    }

    fn object(&self, path: &str, size: u64) -> Object {
        let path = format!("{}{path}", self.below);
        // A name that was listed can be parsed; encoding it would give another name.
        let path = Path::parse(&path).unwrap_or_else(|_| Path::from(path));
        Object { store: self.store.clone(), runtime: self.runtime.clone(), path, size }
    }
}

/// An empty object stands for a folder where a store has none; the client has cut the slash off
/// its name. It is no file that was passed over.
pub fn drop_folder_marks(sorted: &mut Vec<Entry>) {
    let all = sorted.clone();
    let has_files = |folder: &str| {
        let below = format!("{folder}/");
        let at = all.partition_point(|e| e.path < below);
        all.get(at).is_some_and(|e| e.path.starts_with(&below))
    };
    sorted.retain(|e| e.size != Some(0) || !(e.path.ends_with(FOLDER_MARK) || has_files(&e.path)));
}

/// Why a folder could not be listed.
fn unlisted(address: &Address, error: &object_store::Error) -> Error {
    if let object_store::Error::InvalidPath { source } = error {
        return anyhow::anyhow!(
            "cannot list {}: {source}, and such a name stops the listing; name a folder further down or the log itself",
            address.given
        );
    }
    explained(address, error)
}

/// There is neither an object nor a folder.
fn nothing(address: &Address) -> Error {
    let Address { given, root, .. } = address;
    let look = match address.provider {
        Provider::Amazon => format!("`aws s3 ls {root}/` shows what is there"),
        Provider::Google => format!("`gcloud storage ls {root}/` shows what is there"),
        Provider::Azure => "`az storage blob list` shows what is there".to_owned(),
    };
    let spelling = if given.contains('%') { ", and names are taken as they stand, % included" } else { "" };
    anyhow::anyhow!("cannot read {given}: there is no object or folder of this name; {look}{spelling}")
}

impl Place for Bucket {
    fn name(&self, path: &str) -> String {
        format!("{}/{}{path}", self.root, self.below)
    }

    fn part(&self, path: &str, size: Option<u64>) -> Part {
        let object = self.object(path, size.unwrap_or_default());
        Part::new(self.name(path), size, move || Ok(Box::new(Pieces::new(object.clone()))))
    }

    fn seekable(&self, path: &str, size: Option<u64>) -> Result<File> {
        let cannot = || format!("cannot read {}", self.name(path));
        let mut file = tempfile::tempfile().with_context(cannot)?;
        io::copy(&mut Pieces::new(self.object(path, size.unwrap_or_default())), &mut file).with_context(cannot)?;
        file.flush()?;
        file.rewind()?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    fn bucket(names: &[(&str, usize)]) -> Bucket {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        for (name, size) in names {
            runtime.block_on(store.put(&Path::parse(name).unwrap(), vec![b'x'; *size].into())).unwrap();
        }
        Bucket { store, runtime: Arc::new(runtime), root: "s3://bucket".to_owned(), below: "logs/".to_owned() }
    }

    fn listed(bucket: &Bucket, most: usize) -> (Vec<String>, bool) {
        let listing = bucket.list(&Path::from("logs"), most).unwrap();
        (listing.entries.into_iter().map(|e| e.path).collect(), listing.whole)
    }

    #[test]
    fn names_are_listed_and_read_as_they_are() {
        let bucket = bucket(&[("logs/a b%3Ac+é", 3), ("logs/x", 2), ("other/x", 1)]);
        assert_eq!(listed(&bucket, 10), (vec!["a b%3Ac+é".to_owned(), "x".to_owned()], true));
        assert_eq!(bucket.name("x"), "s3://bucket/logs/x");
        let mut file = bucket.seekable("a b%3Ac+é", Some(3)).unwrap();
        let mut text = String::new();
        io::Read::read_to_string(&mut file, &mut text).unwrap();
        assert_eq!(text, "xxx");
    }

    #[test]
    fn a_listing_that_is_cut_says_so() {
        let bucket = bucket(&[("logs/a", 1), ("logs/b", 1), ("logs/c", 1)]);
        assert!(listed(&bucket, 3).1);
        assert_eq!(listed(&bucket, 2), (vec!["a".to_owned(), "b".to_owned()], false));
    }

    #[test]
    #[cfg(all(feature = "serve", target_os = "linux"))]
    fn a_log_of_commits_is_listed_from_one_on() {
        let commit = |version: i64| format!("{version:020}.json");
        let [ninth, tenth] = [9, 10].map(|version| format!("logs/t/_delta_log/{}", commit(version)));
        let bucket = bucket(&[
            ("logs/t/a.parquet", 1),
            (&ninth, 2),
            (&tenth, 3),
            ("logs/t/_delta_log/_last_checkpoint", 1),
            ("logs/t/_delta_log/_sidecars/1.parquet", 1),
        ]);
        let address = Address::parse("s3://bucket/logs/t").unwrap();
        let names =
            |folder, after: Option<i64>| bucket.names_after(&address, folder, after.map(commit).as_deref()).unwrap();
        assert_eq!(names("_delta_log", None), [commit(9), commit(10)]);
        assert_eq!(names("_delta_log", Some(9)), [commit(10)]);
        assert_eq!(names("none", None), Vec::<String>::new());
        let bytes =
            |version: i64, most| bucket.bytes(&address, &format!("_delta_log/{}", commit(version)), most).unwrap();
        assert_eq!(
            [bytes(10, 3), bytes(10, 2), bytes(11, 3)].map(|bytes| bytes.map(|bytes| bytes.len())),
            [Some(3), None, None]
        );
    }

    #[test]
    fn marks_of_folders_are_no_files() {
        let names = [("logs/app", 0), ("logs/app/events_1_app", 1), ("logs/app_$folder$", 0), ("logs/empty", 0)];
        assert_eq!(listed(&bucket(&names), 10).0, ["app/events_1_app", "empty"]);
    }
}
