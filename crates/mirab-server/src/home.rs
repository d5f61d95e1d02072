//! The home directory: its lock, the server's discovery file, the token. Only its owner can read it.
use mirab_wire::ServerFile;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const OWNER_ONLY_DIR: u32 = 0o700;
const OWNER_ONLY_FILE: u32 = 0o600;
/// How long to wait for the discovery file of a server that holds the lock but is still starting.
const STARTING: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Why a home cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Another server holds it.
    #[error("a server is already serving this home at {url}: it can take further directories, or stop it first")]
    AlreadyServing {
        /// Where it answers.
        url: String,
    },
    /// Another server holds it and does not say where it answers.
    #[error("a server (process {pid}) holds the home {} but does not answer yet: wait for it or stop it", home.display())]
    StillStarting {
        /// The home.
        home: PathBuf,
        /// The server's process, as its lock file says.
        pid: String,
    },
    /// The directory or a file in it cannot be used.
    #[error("{} cannot be used: {error}; the home must be a directory that you own, name another with --home", path.display())]
    Unusable {
        /// The directory or file.
        path: PathBuf,
        /// What failed.
        error: io::Error,
    },
}

/// A home that this process holds.
#[derive(Debug)]
pub struct Home {
    dir: PathBuf,
    /// Held until it is closed; the kernel does that even when the server is killed.
    _lock: File,
}

impl Home {
    /// Creates the directory where it is missing, and locks it.
    ///
    /// # Errors
    /// When another server holds it or it cannot be used.
    pub fn open(dir: &Path) -> Result<Self, HomeError> {
        let unusable = |error| HomeError::Unusable { path: dir.to_owned(), error };
        // The narrow mode is there from the start: there is no moment in which others could look in.
        DirBuilder::new().recursive(true).mode(OWNER_ONLY_DIR).create(dir).map_err(unusable)?;
        narrow(dir).map_err(unusable)?;
        let dir = dir.canonicalize().map_err(unusable)?;
        let lock = lock(&dir)?;
        let home = Self { dir, _lock: lock };
        let logs = home.logs_dir();
        DirBuilder::new()
            .recursive(true)
            .mode(OWNER_ONLY_DIR)
            .create(&logs)
            .map_err(|error| HomeError::Unusable { path: logs, error })?;
        Ok(home)
    }

    /// The directory, absolute.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the store is.
    #[must_use]
    pub fn store_path(&self) -> PathBuf {
        self.dir.join("mirab.db")
    }

    /// Where the output of engines goes.
    #[must_use]
    pub fn logs_dir(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// The table of engine processes.
    #[must_use]
    pub fn engines_path(&self) -> PathBuf {
        self.dir.join("engines.json")
    }

    /// Tells clients of this home where the server answers.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn announce(&self, bound: SocketAddr) -> io::Result<String> {
        let url = dialable_url(bound);
        let file = ServerFile { url: url.clone(), pid: std::process::id() };
        write_atomically(&self.server_path(), &serde_json::to_vec(&file)?)?;
        Ok(url)
    }

    /// Takes the announcement back.
    pub fn withdraw(&self) {
        let _ = std::fs::remove_file(self.server_path());
    }

    /// The token, made at the first call and kept.
    ///
    /// # Errors
    /// When it can be neither read nor written.
    pub fn token(&self) -> io::Result<String> {
        let path = self.dir.join("token");
        match std::fs::read_to_string(&path) {
            Ok(token) if !token.trim().is_empty() => return Ok(token.trim().to_owned()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut random = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        write_atomically(&path, token.as_bytes())?;
        Ok(token)
    }

    fn server_path(&self) -> PathBuf {
        self.dir.join("server.json")
    }
}

/// Replaces a file of the home in one step; readers see the old or the new one, never a part.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(OWNER_ONLY_FILE).open(&part)?;
    file.write_all(content)?;
    std::fs::rename(&part, path)
}

/// A home that was made by hand is narrowed too.
fn narrow(dir: &Path) -> io::Result<()> {
    let mode = std::fs::metadata(dir)?.permissions().mode() & 0o777;
    if mode == OWNER_ONLY_DIR { Ok(()) } else { std::fs::set_permissions(dir, Permissions::from_mode(OWNER_ONLY_DIR)) }
}

fn lock(dir: &Path) -> Result<File, HomeError> {
    let path = dir.join("lock");
    let unusable = |error| HomeError::Unusable { path: path.clone(), error };
    let options =
        || OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY_FILE).open(&path);
    let mut file = options().map_err(unusable)?;
    let give_up = Instant::now() + STARTING;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(error) => return Err(unusable(error.into())),
        }
        // A discovery file may be left over from a server that was killed: only the holder's own counts.
        let holder = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(url) = url_of(dir, &holder) {
            return Err(HomeError::AlreadyServing { url });
        }
        if Instant::now() > give_up {
            return Err(HomeError::StillStarting { home: dir.to_owned(), pid: holder });
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(unusable)?;
    Ok(file)
}

fn url_of(dir: &Path, holder: &str) -> Option<String> {
    let text = std::fs::read_to_string(dir.join("server.json")).ok()?;
    let file: ServerFile = serde_json::from_str(&text).ok()?;
    (file.pid.to_string() == holder.trim()).then_some(file.url)
}

/// An address that a client on this machine can dial, even when the server listens on all of them.
fn dialable_url(bound: SocketAddr) -> String {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, bound.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_look_into_a_home() {
        let parent = tempfile::tempdir().unwrap();
        let home = Home::open(&parent.path().join("a/home")).unwrap();
        let token = home.token().unwrap();
        assert_eq!((token.len(), home.token().unwrap()), (64, token));
        home.announce("127.0.0.1:1".parse().unwrap()).unwrap();
        assert_eq!((mode(home.dir()), mode(&home.logs_dir())), (0o700, 0o700));
        for file in ["token", "server.json", "lock"] {
            assert_eq!(mode(&home.dir().join(file)), 0o600, "{file}");
        }
    }

    #[test]
    fn a_home_made_by_hand_is_narrowed() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("wide");
        DirBuilder::new().mode(0o755).create(&dir).unwrap();
        assert_eq!(mode(Home::open(&dir).unwrap().dir()), 0o700);
    }

    #[test]
    fn a_second_server_learns_where_the_first_answers() {
        let dir = tempfile::tempdir().unwrap();
        // Left over from a server that was killed.
        let stale = ServerFile { url: "http://stale".into(), pid: 1 };
        std::fs::write(dir.path().join("server.json"), serde_json::to_vec(&stale).unwrap()).unwrap();
        let home = Home::open(dir.path()).unwrap();
        home.announce("0.0.0.0:4747".parse().unwrap()).unwrap();
        let error = Home::open(dir.path()).unwrap_err();
        assert!(matches!(&error, HomeError::AlreadyServing { url } if url == "http://127.0.0.1:4747"), "{error}");
        drop(home);
        Home::open(dir.path()).unwrap();
    }

    #[test]
    fn urls_can_be_dialled() {
        let url = |bound: &str| dialable_url(bound.parse().unwrap());
        assert_eq!(url("0.0.0.0:80"), "http://127.0.0.1:80");
        assert_eq!(url("[::]:80"), "http://[::1]:80");
        assert_eq!(url("10.0.0.7:80"), "http://10.0.0.7:80");
    }
}
