//! A cable with a known delay, for kernels that cannot delay packets: a process that carries bytes between two sockets.
//! It passes each piece on a fixed time after its arrival.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

/// Maximum number of pieces in transit in one direction; a full cable makes the sender wait, like a real one.
const PIECES: usize = 1024;
const PIECE: usize = 64 * 1024;

/// Arguments of the role.
#[derive(Debug, Clone, clap::Args)]
pub struct Ask {
    /// Address to listen on.
    #[arg(long)]
    pub from: String,
    /// Address to carry the bytes to.
    #[arg(long)]
    pub to: String,
    /// For how long a piece is under way.
    #[arg(long)]
    pub microseconds: u64,
}

/// Carries bytes until the process is killed.
pub fn run(ask: &Ask) -> Result<(), String> {
    let listener = TcpListener::bind(&ask.from).map_err(|e| format!("{}: {e}", ask.from))?;
    serve(&listener, &ask.to, Duration::from_micros(ask.microseconds)).map_err(|e| e.to_string())
}

fn serve(listener: &TcpListener, to: &str, late: Duration) -> std::io::Result<()> {
    for near in listener.incoming() {
        let near = near?;
        // If nothing listens at the other end yet, the caller is disconnected and calls again.
        let Ok(far) = TcpStream::connect(to) else { continue };
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        carry(near.try_clone()?, far.try_clone()?, late);
        carry(far, near, late);
    }
    Ok(())
}

/// Carries one direction in two threads: one stamps the arriving bytes, the other waits until each is due.
fn carry(from: TcpStream, to: TcpStream, late: Duration) {
    let (pieces, due) = sync_channel::<(Instant, Vec<u8>)>(PIECES);
    thread::spawn(move || take(from, &pieces, late));
    thread::spawn(move || {
        let mut to = to;
        for (at, piece) in due {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        // The end of one direction ends the connection, which may be gone already.
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

fn take(mut from: TcpStream, pieces: &SyncSender<(Instant, Vec<u8>)>, late: Duration) {
    let mut buffer = vec![0; PIECE];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || pieces.send((Instant::now() + late, buffer[..count].to_vec())).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order_both_ways() -> std::io::Result<()> {
        let late = Duration::from_millis(20);
        let (listener, far) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let (at, to) = (listener.local_addr()?, far.local_addr()?.to_string());
        thread::spawn(move || serve(&listener, &to, late));
        let mut near = TcpStream::connect(at)?;
        let (mut far, _) = far.accept()?;
        let sent: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
        let mut got = vec![0; sent.len()];
        let whole = sent.clone();
        let writer = thread::spawn(move || near.write_all(&whole).map(|()| near));
        far.read_exact(&mut got)?;
        assert_eq!(got, sent);
        let mut near = writer.join().map_err(|_| std::io::Error::other("the writer panicked"))??;
        far.write_all(b"answer")?;
        let mut answer = [0; 6];
        near.read_exact(&mut answer)?;
        assert_eq!(&answer, b"answer");
        Ok(())
    }
}
