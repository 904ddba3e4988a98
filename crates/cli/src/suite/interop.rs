//! An endpoint by the container contract of the QUIC interop runner (quic-interop-runner, README): an image, or its unpacked
//! root. [`Endpoint`] makes the two commands from it that a stack of the suite has.

use super::folder::Folder;
use anyhow::{Context, Result, bail, ensure};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde::Deserialize;
use slowstart_linux::emulate::{CLIENT, SERVER};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// What runs an endpoint, and what it reads.
const SCRIPT: &str = include_str!("interop.sh");
/// The script that every image has.
const ENTRY: &str = "run_endpoint.sh";
/// Where a root may have it: the root itself, and this many folders below.
const DEPTH: usize = 2;
/// The search path of an image that states none.
const SEARCH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The most bytes that the first line of a script has: Linux reads no more.
const LINE: u64 = 256;
/// Symbolic links that are followed within a root.
const LINKS: usize = 40;
/// The port at which the client waits for the runner's simulator.
pub(super) const SIMULATOR_PORT: u16 = 57832;
/// The status of an endpoint that does not have the test case.
pub(super) const UNSUPPORTED: i32 = 127;
/// The status of our script if it could not prepare the root.
pub(super) const UNPREPARED: i32 = 125;

/// How an image is started: the part of its configuration that matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Start {
    words: Vec<String>,
    environment: Vec<String>,
    directory: String,
}

/// The `process` of an OCI bundle's `config.json`.
#[derive(Deserialize)]
struct Bundle {
    process: Process,
}

#[derive(Deserialize)]
struct Process {
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    cwd: String,
}

/// What `podman image inspect` and `docker image inspect` print.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    id: String,
    config: ImageConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ImageConfig {
    #[serde(default)]
    env: Option<Vec<String>>,
    #[serde(default)]
    entrypoint: Option<Vec<String>>,
    #[serde(default)]
    cmd: Option<Vec<String>>,
    #[serde(default)]
    working_dir: String,
}

/// An endpoint that is ready to run.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// Its name, for the report.
    pub(super) name: String,
    /// The identifier of its image, where an engine knows it.
    pub(super) id: Option<String>,
    /// The test case that both ends are asked for.
    pub(super) testcase: String,
    /// Where its server's qlog goes.
    pub(super) qlog: PathBuf,
    /// Settings, certificates, the mount points, and the root of an image.
    work: Folder,
}

impl Endpoint {
    /// Prepares the endpoint of a folder or an image. Its server's qlog goes to `qlog`, or is lost with it.
    pub(super) fn open(text: &str, testcase: &str, qlog: Option<&Path>) -> Result<Self> {
        let work = Folder::create("interop")?;
        let named = || format!("--interop {text}");
        let folder = Path::new(text);
        let (root, mut start, id) = if folder.is_dir() {
            let (root, start) = unpacked(folder).with_context(named)?;
            (root, start, None)
        } else if text.starts_with(['/', '.']) {
            bail!("--interop: found no folder {text}, expected an image or its unpacked root");
        } else {
            let (root, start, id) = pulled(text, work.path()).with_context(named)?;
            // Docker writes what it is a hash of, podman does not.
            (root, start, Some(format!("image sha256:{}", id.trim_start_matches("sha256:"))))
        };
        if start.directory.is_empty() {
            start.directory = "/".into();
        }
        check(&root, &start).with_context(named)?;
        let root = fs::canonicalize(root)?;
        let own = work.path().join("qlog");
        for dir in ["top", "certs", "qlog"] {
            fs::create_dir(work.path().join(dir))?;
        }
        let qlog = qlog.map_or(Ok(own), fs::canonicalize)?;
        let settings = settings(&start, testcase, &qlog)?;
        symlink(root, work.path().join("image"))?;
        let hosts = format!(
            "127.0.0.1 localhost sim\n{SERVER} server server4 server46\n{CLIENT} client client4 client46\n"
        );
        for (file, text) in [("settings", &*settings), ("endpoint.sh", SCRIPT), ("hosts", &hosts)] {
            fs::write(work.path().join(file), text)?;
        }
        certificates(&work.path().join("certs"))?;
        Ok(Self { name: name_of(text), id, testcase: testcase.into(), qlog, work })
    }

    /// True if its server's qlog goes where the caller did not say.
    pub(super) fn has_own_qlog(&self) -> bool {
        self.qlog.starts_with(self.work.path())
    }

    /// Refuses a root whose files this user may not copy: those of others, without root.
    pub(super) fn check_owner(&self) -> Result<()> {
        let owner = |path: &Path| fs::metadata(path).map(|m| (m.uid(), m.gid()));
        let (found, own) = (owner(&self.work.path().join("image"))?, owner(self.work.path())?);
        ensure!(
            found == own,
            "--interop: the root of {} belongs to another user or group: run as root, or unpack it as this user",
            self.name
        );
        Ok(())
    }

    /// The command of one end.
    pub(super) fn command(&self, role: &str) -> Result<String> {
        let script = self.work.path().join("endpoint.sh");
        let script = script.to_str().context("the folder of temporary files has a name that is not UTF-8")?;
        Ok(format!("exec sh {} {role}", quoted(script)?))
    }
}

/// The name of an image, or of the folder: its last part, without a tag and a digest.
fn name_of(text: &str) -> String {
    let last = |text: &str| Path::new(text).file_name().map(|n| n.to_string_lossy().into_owned());
    let path = fs::canonicalize(text).ok().filter(|p| p.is_dir());
    match path {
        Some(path) => last(&path.to_string_lossy()),
        None => last(text).map(|name| name.split([':', '@']).next().unwrap_or(&name).to_string()),
    }
    .unwrap_or_else(|| "endpoint".into())
}

fn quoted(word: &str) -> Result<String> {
    Ok(shlex::try_quote(word)?.into_owned())
}

/// The lines that the script reads: what the image says of itself, and the variables of the contract that do not change.
fn settings(start: &Start, testcase: &str, qlog: &Path) -> Result<String> {
    let fixed = [
        "SSLKEYLOGFILE=/logs/keys.log",
        "QLOGDIR=/logs/qlog/",
        "SERVER_PARAMS=",
        "CLIENT_PARAMS=",
        "WWW=/www",
        "DOWNLOADS=/downloads",
        "CERTS=/certs",
        "SERVER=server4",
        "CLIENT=client4",
    ];
    let ours = [SEARCH, "HOME=/root", "TERM=dumb"].into_iter();
    let own = start.environment.iter().map(String::as_str);
    let variables = ours.chain(own).chain(fixed).map(quoted).collect::<Result<Vec<_>>>()?.join(" ");
    let words = start.words.iter().map(|w| quoted(w)).collect::<Result<Vec<_>>>()?.join(" ");
    let [testcase, directory, qlog] =
        [quoted(testcase)?, quoted(&start.directory)?, quoted(&qlog.to_string_lossy())?];
    Ok(format!(
        "image() {{ env -i {variables} TESTCASE={testcase} \"$@\"; }}\n\
         directory={directory} qlog={qlog}\nset -- {words}\n"
    ))
}

/// The root and the start of a folder: an OCI bundle, with `config.json` and `rootfs`, or a root alone, in which
/// `run_endpoint.sh` is searched.
fn unpacked(folder: &Path) -> Result<(PathBuf, Start)> {
    let config = folder.join("config.json");
    if config.is_file() && folder.join("rootfs").is_dir() {
        let text = slowstart_files::read_text(&config, slowstart_files::MOST_TEXT)
            .with_context(|| config.display().to_string())?;
        let Bundle { process: Process { args, env, cwd } } = serde_json::from_str(&text)
            .with_context(|| format!("{}: no configuration of an OCI bundle", config.display()))?;
        return Ok((folder.join("rootfs"), Start { words: args, environment: env, directory: cwd }));
    }
    let mut found = Vec::new();
    entries(folder, DEPTH, &mut found);
    // What is nearest to the root is the image's own.
    found.sort_by_key(|p| (p.components().count(), p.clone()));
    let entry = match &found[..] {
        [] => bail!("found no {ENTRY} in the root or {DEPTH} folders below, expected the endpoint's"),
        [one] => one,
        [one, next, ..] if one.components().count() < next.components().count() => one,
        [one, next, ..] => bail!(
            "found {} and {}, expected one {ENTRY}; a bundle (config.json beside rootfs) says which",
            one.display(),
            next.display()
        ),
    };
    let inside = Path::new("/").join(entry.strip_prefix(folder)?);
    let directory = inside.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    Ok((
        folder.to_path_buf(),
        Start { words: vec![format!("./{ENTRY}")], environment: Vec::new(), directory },
    ))
}

/// Collects the entries below a folder; links are not followed.
fn entries(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entry = folder.join(ENTRY);
    if entry.is_file() {
        found.push(entry);
    }
    if depth > 0 {
        let all = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = all.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
        folders.for_each(|e| entries(&e.path(), depth - 1, found));
    }
}

/// The root of an image, unpacked into `work` by the container engine that is there, and its start.
fn pulled(image: &str, work: &Path) -> Result<(PathBuf, Start, String)> {
    let run = |engine: &str, arguments: &[&str]| -> Result<String> {
        let out = Command::new(engine).args(arguments).stdin(Stdio::null()).output()?;
        let why = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "{engine} {}: {}", arguments.join(" "), why.trim());
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_string())
    };
    let works = |engine: &&str| run(engine, &["info"]).is_ok();
    let Some(engine) = ["podman", "docker"].into_iter().find(works) else {
        bail!(
            "no folder of this name, and neither podman nor docker runs here to unpack an image; expected the image's unpacked root"
        );
    };
    let container = run(engine, &["create", image, "true"])?;
    let container = container.lines().last().unwrap_or_default();
    let (root, tar) = (work.join("rootfs"), work.join("rootfs.tar"));
    fs::create_dir(&root)?;
    let tar = tar.to_string_lossy();
    let exported = run(engine, &["export", "-o", &tar, container]);
    run(engine, &["rm", container])?;
    exported?;
    run("tar", &["-x", "-p", "--numeric-owner", "-f", &tar, "-C", &root.to_string_lossy()])?;
    fs::remove_file(&*tar)?;
    let text = run(engine, &["image", "inspect", image])?;
    let mut all: Vec<Inspected> =
        serde_json::from_str(&text).with_context(|| format!("{engine} image inspect {image}"))?;
    let Inspected { id, config } = all.pop().context("the engine knows no such image")?;
    let mut words = config.entrypoint.unwrap_or_default();
    words.extend(config.cmd.unwrap_or_default());
    Ok((
        root,
        Start { words, environment: config.env.unwrap_or_default(), directory: config.working_dir },
        id,
    ))
}

/// Holds a start to the root, so that status 127 of an endpoint means what the contract says, and not that a file is missing.
fn check(root: &Path, start: &Start) -> Result<()> {
    let Some(program) = start.words.first() else { bail!("the image names no program to start") };
    if let Some(wrong) = start.environment.iter().find(|e| !e.contains('=')) {
        bail!("found the variable {wrong:?}, expected NAME=VALUE");
    }
    let directory = within(root, &start.directory).filter(|d| d.is_dir());
    ensure!(
        directory.is_some(),
        "found no folder {} in the root, which the image starts in",
        start.directory
    );
    if !program.contains('/') {
        return Ok(());
    }
    let path = Path::new("/").join(&start.directory).join(program);
    let Some(file) = within(root, &path.to_string_lossy()).filter(|f| f.is_file()) else {
        bail!("found no {} in the root", path.display());
    };
    // A program may be large, and its first line is enough.
    let open = fs::File::open(&file).with_context(|| file.display().to_string())?;
    let text = slowstart_files::head(open, LINE).with_context(|| file.display().to_string())?;
    let line = text.strip_prefix(b"#!").and_then(|t| t.split(|b| *b == b'\n').next()).unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    if let Some(interpreter) = line.split_whitespace().next() {
        let there = within(root, interpreter).is_some_and(|f| f.is_file());
        ensure!(there, "{}: found no {interpreter} in the root, which runs it", path.display());
    }
    Ok(())
}

/// The file of a path within a root, whose links stay within it; `None` if it is not there.
fn within(root: &Path, path: &str) -> Option<PathBuf> {
    let mut rest: Vec<std::ffi::OsString> = Vec::new();
    let push = |path: &Path, rest: &mut Vec<std::ffi::OsString>| {
        let parts: Vec<_> = path.components().map(|c| c.as_os_str().to_owned()).collect();
        rest.extend(parts.into_iter().rev());
    };
    push(Path::new(path), &mut rest);
    let (mut at, mut links) = (PathBuf::new(), 0);
    while let Some(part) = rest.pop() {
        match Path::new(&part).components().next()? {
            Component::RootDir | Component::Prefix(_) => at = PathBuf::new(),
            Component::CurDir => {}
            Component::ParentDir => {
                at.pop();
            }
            Component::Normal(name) => {
                let file = root.join(&at).join::<&OsStr>(name);
                if fs::symlink_metadata(&file).ok()?.is_symlink() {
                    links += 1;
                    if links > LINKS {
                        return None;
                    }
                    push(&fs::read_link(&file).ok()?, &mut rest);
                } else {
                    at.push(name);
                }
            }
        }
    }
    Some(root.join(at))
}

/// A key and its certificate for the server, and the authority that signed it, under the runner's names.
fn certificates(dir: &Path) -> Result<()> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "slowstart suite");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate()?;
    let root = authority.self_signed(&key)?;
    let issuer = Issuer::new(authority, key);
    let own = KeyPair::generate()?;
    let names = ["server", "server4", "server6", "server46"].map(str::to_string);
    let leaf = CertificateParams::new(names)?.signed_by(&own, &issuer)?;
    for (file, text) in
        [("ca.pem", root.pem()), ("cert.pem", leaf.pem() + &root.pem()), ("priv.key", own.serialize_pem())]
    {
        fs::write(dir.join(file), text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A root with these files: path and text.
    fn root(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::create("interop-test").expect("writable");
        for (path, text) in files {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("writable");
            fs::write(&file, text).expect("writable");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("ours");
        }
        folder
    }

    fn why(folder: &Folder) -> String {
        let read = unpacked(folder.path()).and_then(|(root, start)| check(&root, &start).map(|()| start));
        format!("{:#}", read.expect_err("refused"))
    }

    #[test]
    fn a_root_has_one_endpoint_nearest_to_it() {
        let entry = (ENTRY, "#!/bin/sh\n");
        let both = root(&[entry, ("bin/sh", ""), ("src/run_endpoint.sh", "")]);
        let (at, start) = unpacked(both.path()).expect("an endpoint");
        assert_eq!((at.as_path(), &*start.directory), (both.path(), "/"));
        check(&at, &start).expect("its interpreter is there");
        let (_, start) = unpacked(root(&[("quic-go/run_endpoint.sh", "")]).path()).expect("an endpoint");
        assert_eq!((start.words, &*start.directory), (vec!["./run_endpoint.sh".to_string()], "/quic-go"));
        assert!(why(&root(&[("a/b/c/run_endpoint.sh", "")])).contains("found no run_endpoint.sh"));
        assert!(why(&root(&[("a/run_endpoint.sh", ""), ("b/run_endpoint.sh", "")])).contains("expected one"));
        let without = why(&root(&[(ENTRY, "#!/bin/bash -e\n")]));
        assert!(without.contains("/./run_endpoint.sh: found no /bin/bash in the root"), "{without}");
    }

    #[test]
    fn a_bundle_says_what_starts() {
        let config = |process: &str| format!("{{\"ociVersion\": \"1.0.2\", \"process\": {process}}}");
        let given = config(
            r#"{"args": ["/go.sh", "a b"], "env": ["PATH=/x", "A=b c"], "cwd": "/w", "terminal": true}"#,
        );
        let bundle = root(&[
            ("config.json", &given),
            ("rootfs/go.sh", "#!/bin/sh"),
            ("rootfs/bin/sh", ""),
            ("rootfs/w/x", ""),
        ]);
        let (at, start) = unpacked(bundle.path()).expect("an endpoint");
        check(&at, &start).expect("all is there");
        assert_eq!(start.words, ["/go.sh", "a b"]);
        let settings = settings(&start, "transfer", Path::new("/q")).expect("words");
        assert!(
            settings.contains("'PATH=/x' 'A=b c' 'SSLKEYLOGFILE=/logs/keys.log' 'QLOGDIR=/logs/qlog/' "),
            "{settings}"
        );
        assert!(settings.ends_with("directory=/w qlog=/q\nset -- /go.sh 'a b'\n"), "{settings}");
        let wrong = config(r#"{"args": ["/go.sh"], "env": ["PATH"], "cwd": "/"}"#);
        assert!(
            why(&root(&[("config.json", &wrong), ("rootfs/go.sh", "")]))
                .contains("found the variable \"PATH\"")
        );
        let nowhere = config(r#"{"args": ["/go.sh"], "cwd": "/none"}"#);
        assert!(
            why(&root(&[("config.json", &nowhere), ("rootfs/go.sh", "")])).contains("found no folder /none")
        );
        assert!(
            why(&root(&[("config.json", "{}"), ("rootfs/go.sh", "")]))
                .contains("no configuration of an OCI bundle")
        );
    }

    /// Links of an image are those of its root, not of the machine.
    #[test]
    fn links_stay_within_the_root() {
        let folder = root(&[("usr/bin/dash", "")]);
        let link = |to: &str, at: &str| symlink(to, folder.path().join(at)).expect("writable");
        link("usr/bin", "bin");
        link("/bin/dash", "usr/bin/sh");
        link("../../../../../etc", "usr/up");
        link("loop", "loop");
        assert_eq!(within(folder.path(), "/bin/sh"), Some(folder.path().join("usr/bin/dash")));
        assert_eq!(within(folder.path(), "/usr/up/passwd"), None);
        assert_eq!(within(folder.path(), "/loop"), None);
        assert_eq!(within(folder.path(), "/../.."), Some(folder.path().to_path_buf()));
    }

    #[test]
    fn an_image_is_named_without_its_tag() {
        assert_eq!(name_of("docker.io/some/quic-go-interop:latest"), "quic-go-interop");
        assert_eq!(name_of("quic@sha256:0123"), "quic");
    }
}
