//! A network namespace of a guest with one TUN device, and what is set in it.

use crate::error::GuestError;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use slowstart_files::MOST_TEXT;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The address of the server, which sends, and that of the client.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// The longest IP and TCP headers.
pub(super) const HEADERS: usize = 120;
/// The largest packet of a device.
const PACKET: usize = 1500;
/// Packets that a device may hold: more than any burst, so that only the path drops.
const DEVICE_QUEUE: libc::c_int = 20_000;

/// A TUN device: each read and each write is one IP packet, whose payload is zeros, and neither blocks.
pub(super) struct Tun {
    file: File,
    payload: Vec<u8>,
    zeros: Vec<u8>,
}

impl Tun {
    /// Returns the headers and the length of the next packet; `None` if there is none.
    pub(super) fn read(&mut self) -> Result<Option<([u8; HEADERS], u32)>, GuestError> {
        let mut headers = [0; HEADERS];
        let into = &mut [IoSliceMut::new(&mut headers), IoSliceMut::new(&mut self.payload)];
        match self.file.read_vectored(into) {
            Ok(n) => Ok(Some((headers, n as u32))),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(GuestError::io("read a packet")(e)),
        }
    }

    /// Hands a packet to the kernel, which processes it before this returns. One that the kernel refuses is lost, as at any host.
    pub(super) fn write(&mut self, headers: &[u8; HEADERS], length: u32) {
        let (head, rest) = ((length as usize).min(HEADERS), (length as usize).saturating_sub(HEADERS));
        let parts = [IoSlice::new(&headers[..head]), IoSlice::new(&self.zeros[..rest])];
        let _ = self.file.write_vectored(&parts);
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Enters a new network namespace with one device of this address.
pub(super) fn enter(address: Ipv4Addr) -> Result<Tun, GuestError> {
    let what = "set up a network namespace";
    unshare(CloneFlags::CLONE_NEWNET).map_err(GuestError::io(what))?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .map_err(GuestError::io("open /dev/net/tun"))?;
    let mut r = request("path0");
    r.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    change(&file, libc::TUNSETIFF, &mut r).map_err(GuestError::io("create a TUN device"))?;
    let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::empty(), None)
        .map_err(GuestError::io(what))?;
    for (name, value) in
        [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, Ipv4Addr::new(255, 255, 255, 0))]
    {
        r.ifr_ifru.ifru_addr = address_of(value);
        change(&any, name, &mut r).map_err(GuestError::io(what))?;
    }
    r.ifr_ifru.ifru_metric = DEVICE_QUEUE;
    change(&any, libc::SIOCSIFTXQLEN, &mut r).map_err(GuestError::io(what))?;
    for mut up in [request("lo"), r] {
        up.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        change(&any, libc::SIOCSIFFLAGS, &mut up).map_err(GuestError::io(what))?;
    }
    Ok(Tun { file, payload: vec![0; PACKET], zeros: vec![0; PACKET] })
}

/// A request about a device, zero but for its name.
#[allow(unsafe_code, reason = "the structure is plain: zeros are a value of it")]
fn request(device: &str) -> libc::ifreq {
    // SAFETY: the structure is plain numbers, for which zeros are values.
    let mut r: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in r.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    r
}

#[allow(
    unsafe_code,
    reason = "no crate in use has these calls; the kernel reads and writes one such structure"
)]
fn change(fd: impl AsFd, what: libc::c_ulong, r: &mut libc::ifreq) -> Result<(), Errno> {
    // SAFETY: each request reads and writes one `ifreq`, which lives longer than the call.
    let done = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), what as _, std::ptr::from_mut(r)) };
    Errno::result(done).map(|_| ())
}

fn address_of(ip: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (to, from) in data[2..6].iter_mut().zip(ip.octets()) {
        *to = from as libc::c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
}

/// Sets a key of `net.ipv4` in the present namespace.
pub(super) fn set(key: &str, value: &str) -> Result<(), GuestError> {
    let file = format!("/proc/sys/net/ipv4/{key}");
    fs::write(&file, value).map_err(GuestError::io(format!("write {value:?} to {file}")))
}

/// The counters of the namespace in which it was opened.
pub(super) struct Counters(File);

impl Counters {
    pub(super) fn open() -> Result<Self, GuestError> {
        File::open("/proc/self/net/netstat").map(Self).map_err(GuestError::io("open /proc/self/net/netstat"))
    }

    pub(super) fn read(&mut self) -> Result<String, GuestError> {
        let bytes =
            io::Seek::rewind(&mut self.0).and_then(|()| slowstart_files::read_from(&self.0, MOST_TEXT));
        let text = bytes.and_then(|b| String::from_utf8(b).map_err(io::Error::other));
        text.map_err(GuestError::io("read /proc/self/net/netstat"))
    }
}
