package org.tampu.internal.bulk;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.security.GeneralSecurityException;
import java.util.List;
import org.tampu.internal.bulk.SendWindow.Framed;

/** A connection that carries frames, each in a sealed record if it is protected. One thread reads it; any thread may write. */
public final class Wire implements AutoCloseable {
    private final SocketChannel channel;
    private final ByteBuffer header = ByteBuffer.allocate(BulkFrame.HEADER);
    private final ByteBuffer out = ByteBuffer.allocate(BulkFrame.HEADER);
    private ByteBuffer payload = ByteBuffer.allocate(256 << 10);
    private BulkFrame frame;
    private int limit = BulkFrame.CONTROL;
    /** Ciphers of both directions on a protected connection. */
    private RecordCipher sealer;
    private RecordCipher opener;
    private final ByteBuffer prefix = ByteBuffer.allocate(RecordCipher.PREFIX);
    private ByteBuffer sealed = ByteBuffer.allocate(0);
    private ByteBuffer record = ByteBuffer.allocate(0);

    /** Takes a connected socket. */
    public Wire(SocketChannel channel) throws IOException {
        this.channel = channel;
        channel.socket().setTcpNoDelay(true);
    }

    /** Connects a socket that is not connected. */
    public void connect(SocketAddress address, int millis) throws IOException {
        channel.socket().connect(address, millis);
    }

    /** Returns whether the traffic of this connection stays on one host. */
    public boolean staysHere() throws IOException {
        InetSocketAddress there = (InetSocketAddress) channel.getRemoteAddress();
        InetSocketAddress here = (InetSocketAddress) channel.getLocalAddress();
        return there.getAddress().isLoopbackAddress() || there.getAddress().equals(here.getAddress());
    }

    /** Protects the connection: from here on each frame is sealed. */
    public void protect(Keys.Half own, Keys.Half other) throws GeneralSecurityException {
        sealer = new RecordCipher(own);
        opener = new RecordCipher(other);
    }

    /** Returns whether the connection is protected. */
    public boolean isProtected() {
        return opener != null;
    }

    /** Sets the longest payload that is taken. */
    public void setLimit(int bytes) {
        limit = Math.max(bytes, BulkFrame.CONTROL);
    }

    /** Sets the longest time without bytes; a read beyond it fails with {@link SocketTimeoutException}. */
    public void setSilence(int millis) throws IOException {
        channel.socket().setSoTimeout(millis);
    }

    /**
     * Reads a frame; its payload is valid until the next call.
     *
     * @throws IllegalArgumentException for bytes that are no frame
     */
    public BulkFrame read() throws IOException {
        if (opener != null) {
            return readRecord();
        }
        fill(header.clear());
        frame = BulkFrame.decode(header.flip());
        if (frame.length() > limit) {
            throw new IllegalArgumentException("a frame of " + frame.length() + " bytes; " + limit + " were agreed");
        }
        if (payload.capacity() < frame.length()) {
            payload = ByteBuffer.allocate(frame.length());
        }
        fill(payload.clear().limit(frame.length()));
        payload.flip();
        return frame;
    }

    private BulkFrame readRecord() throws IOException {
        fill(prefix.clear());
        int length = opener.length(prefix.flip(), limit);
        if (sealed.capacity() < length) {
            sealed = ByteBuffer.allocate(length);
            payload = ByteBuffer.allocate(length);
        }
        fill(sealed.clear().limit(length));
        ByteBuffer opened = payload.clear();
        try {
            opener.open(prefix, sealed.flip(), opened);
        } catch (GeneralSecurityException changed) {
            throw new IOException("a record does not open: it was changed on its way", changed);
        }
        frame = BulkFrame.decode(opened.flip());
        if (frame.length() != opened.remaining()) {
            throw new IllegalArgumentException("a frame of " + frame.length() + " bytes in a record of " + length);
        }
        return frame;
    }

    /** Returns the payload of the last frame. */
    public ByteBuffer payload() {
        return payload.duplicate();
    }

    private void fill(ByteBuffer into) throws IOException {
        // The socket's stream honours the time limit, a channel does not.
        var stream = channel.socket().getInputStream();
        while (into.hasRemaining()) {
            int read = stream.read(into.array(), into.position(), into.remaining());
            if (read < 0) {
                throw new EOFException("the other end closed the connection");
            }
            into.position(into.position() + read);
        }
    }

    /** Writes a frame. */
    public void write(BulkFrame of, ByteBuffer bytes) throws IOException {
        synchronized (out) {
            if (sealer != null) {
                writeRecord(of, bytes);
                return;
            }
            of.encode(out.clear());
            ByteBuffer[] both = {out.flip(), bytes.duplicate()};
            while (both[0].hasRemaining() || both[1].hasRemaining()) {
                channel.write(both);
            }
        }
    }

    private void writeRecord(BulkFrame of, ByteBuffer bytes) throws IOException {
        int length = bytes.remaining() + RecordCipher.ADDED;
        if (record.capacity() < length) {
            record = ByteBuffer.allocateDirect(length);
        }
        try {
            sealer.seal(of, bytes, record.clear());
        } catch (GeneralSecurityException failed) {
            throw new IOException(failed.getMessage(), failed);
        }
        for (record.flip(); record.hasRemaining(); ) {
            channel.write(record);
        }
    }

    /** Writes these frames, in as few calls of the system as possible. */
    public void write(List<Framed> frames) throws IOException {
        synchronized (out) {
            if (sealer != null) {
                for (Framed each : frames) {
                    writeRecord(each.header(), each.bytes());
                }
                return;
            }
            ByteBuffer heads = ByteBuffer.allocate(frames.size() * BulkFrame.HEADER);
            ByteBuffer[] all = new ByteBuffer[2 * frames.size()];
            for (int index = 0; index < frames.size(); index++) {
                frames.get(index).header().encode(heads);
                all[2 * index] = heads.slice(index * BulkFrame.HEADER, BulkFrame.HEADER);
                all[2 * index + 1] = frames.get(index).bytes().duplicate();
            }
            for (int from = 0; from < all.length; ) {
                if (all[from].hasRemaining()) {
                    channel.write(all, from, all.length - from);
                } else {
                    from++;
                }
            }
        }
    }

    /** Writes a control frame outside of a transfer. */
    public void write(int kind, ByteBuffer bytes) throws IOException {
        write(BulkFrame.checked(kind, 0, 0, 0, 0, bytes), bytes);
    }

    /** Says that no more frames come; a connection that is broken already needs no word. */
    public void finishQuietly() {
        try {
            channel.shutdownOutput();
        } catch (IOException broken) {
            closeQuietly();
        }
    }

    /** Ends reading: frames that were not read yet are of no more use. */
    public void ignoreRest() {
        try {
            channel.shutdownInput();
        } catch (IOException broken) {
            closeQuietly();
        }
    }

    /** Closes a connection that is of no more use. */
    public void closeQuietly() {
        try {
            channel.close();
        } catch (IOException closed) {
            // The system has taken it back all the same.
        }
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
