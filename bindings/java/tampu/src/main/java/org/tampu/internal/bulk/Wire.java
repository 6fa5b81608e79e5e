package org.tampu.internal.bulk;

import java.io.EOFException;
import java.io.IOException;
import java.net.SocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/** A connection that carries frames. One thread reads it; any thread may write. */
public final class Wire implements AutoCloseable {
    private final SocketChannel channel;
    private final ByteBuffer header = ByteBuffer.allocate(BulkFrame.HEADER);
    private final ByteBuffer out = ByteBuffer.allocate(BulkFrame.HEADER);
    private ByteBuffer payload = ByteBuffer.allocate(256 << 10);
    private BulkFrame frame;
    private int limit = BulkFrame.CONTROL;

    /** Takes a connected socket. */
    public Wire(SocketChannel channel) throws IOException {
        this.channel = channel;
        channel.socket().setTcpNoDelay(true);
    }

    /** Connects a socket that is not connected. */
    public void connect(SocketAddress address, int millis) throws IOException {
        channel.socket().connect(address, millis);
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
            of.encode(out.clear());
            ByteBuffer[] both = {out.flip(), bytes.duplicate()};
            while (both[0].hasRemaining() || both[1].hasRemaining()) {
                channel.write(both);
            }
        }
    }

    /** Writes the rest of these buffers. */
    public void write(ByteBuffer[] all) throws IOException {
        synchronized (out) {
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
