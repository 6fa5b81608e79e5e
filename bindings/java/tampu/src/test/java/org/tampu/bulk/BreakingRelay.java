package org.tampu.bulk;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/** A network between a sender and its receiver, which breaks each connection after a number of bytes, and sees the sender's bytes. */
final class BreakingRelay implements AutoCloseable {
    private final ServerSocket listener = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
    private final BulkTarget behind;
    private final int after;
    private final AtomicInteger connections = new AtomicInteger();
    private final ByteArrayOutputStream seen = new ByteArrayOutputStream();

    BreakingRelay(BulkTarget behind, int after) throws IOException {
        this.behind = behind;
        this.after = after;
        daemon(this::accept);
    }

    BulkTarget target() {
        return new BulkTarget("127.0.0.1", listener.getLocalPort(), behind.token());
    }

    int connections() {
        return connections.get();
    }

    /** Returns whether the sender has sent these bytes in the clear. */
    boolean saw(byte[] wanted) {
        byte[] all = seen.toByteArray();
        for (int at = 0; at + wanted.length <= all.length; at++) {
            if (Arrays.equals(all, at, at + wanted.length, wanted, 0, wanted.length)) {
                return true;
            }
        }
        return false;
    }

    private static void daemon(Runnable run) {
        Thread thread = new Thread(run, "relay");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        try {
            while (true) {
                Socket here = listener.accept();
                Socket there = new Socket(behind.host(), behind.port());
                connections.incrementAndGet();
                daemon(() -> copy(here, there, after, seen));
                daemon(() -> copy(there, here, Integer.MAX_VALUE, OutputStream.nullOutputStream()));
            }
        } catch (IOException closed) {
            // The test is over.
        }
    }

    private static void copy(Socket from, Socket to, int most, OutputStream seen) {
        try (from; to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] bytes = new byte[8192];
            for (int left = most; left > 0; ) {
                int read = in.read(bytes, 0, Math.min(left, bytes.length));
                if (read < 0) {
                    return;
                }
                seen.write(bytes, 0, read);
                out.write(bytes, 0, read);
                left -= read;
            }
        } catch (IOException broken) {
            // As connections break.
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }
}
