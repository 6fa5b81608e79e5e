package org.tampu.internal.bulk;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.tampu.internal.bulk.SendWindow.Framed;

/** The threads of a receiver: one connects, reconnects and reads answers, the other one writes. */
final class SendConnection {
    private static final int CONNECT_MILLIS = 5_000;
    /** Longest wait for the answer to a Hello. The receiver may be in a callback. */
    private static final int WELCOME_MILLIS = 10_000;
    private static final long PAUSE = 50_000_000;
    private static final long LONGEST_PAUSE = 1_000_000_000;
    /** Most frames and bytes of one system call. A slow receiver shows its progress after each. */
    private static final int FRAMES = 32;
    private static final int BYTES = 256 << 10;
    private static final int LEAST_FRAME = 1024;

    /** A receiver's refusal of this sender. */
    private static final class Refused extends IOException {
        private static final long serialVersionUID = 1;
        private static final int PROTECTION = 8;

        private final int reason;

        Refused(Messages.Refuse refuse) {
            super(reason(refuse.reason()) + (refuse.text().isEmpty() ? "" : ": " + refuse.text()));
            reason = refuse.reason();
        }

        private static String reason(int number) {
            return switch (number) {
                case 1 -> "it does not know this sender's token or domain";
                case 2 -> "it has no such stream";
                case 3 -> "it has no such flow";
                case 4 -> "the flow has another sender";
                case 5 -> "it does not take TCP";
                case 6 -> "it does not know this version";
                case 7 -> "it has too many connections";
                case 8 -> "the flow demands protection";
                case 9 -> "its access rules deny it";
                default -> "it refuses with reason " + number;
            };
        }
    }

    /** The receiver demands protection, which the next connection gets. */
    private static final class Stronger extends IOException {
        private static final long serialVersionUID = 1;
    }

    private final SendFlow flow;
    private final SendLink link;
    private boolean demandsProtection;
    private ByteBuffer copied = ByteBuffer.allocate(0);

    SendConnection(SendFlow flow, SendLink link) {
        this.flow = flow;
        this.link = link;
    }

    void start() {
        daemon("tampu-bulk-connect", this::keep);
        daemon("tampu-bulk-write", this::write);
    }

    private static void daemon(String name, Runnable run) {
        Thread thread = new Thread(run, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void keep() {
        long pause = PAUSE;
        while (true) {
            Wire wire = null;
            String why;
            boolean isRefused = false;
            long attached = 0;
            try {
                wire = new Wire(SocketChannel.open());
                Messages.Welcome welcome = greet(wire);
                flow.lock.lock();
                try {
                    if (flow.isClosing() || link.isRemoved) {
                        wire.closeQuietly();
                        return;
                    }
                    flow.attach(link, wire, welcome);
                } finally {
                    flow.lock.unlock();
                }
                attached = System.nanoTime();
                read(wire);
                return;
            } catch (Stronger again) {
                wire.closeQuietly();
                continue;
            } catch (IOException | IllegalArgumentException failed) {
                isRefused = failed instanceof Refused;
                why = failed.getMessage() == null ? failed.getClass().getSimpleName() : failed.getMessage();
            }
            if (wire != null) {
                wire.closeQuietly();
            }
            // Somebody on the way may spoil each protected connection: the exchange of keys must not fill the time.
            if (attached != 0 && (!wire.isProtected() || System.nanoTime() - attached > LONGEST_PAUSE)) {
                pause = PAUSE;
            }
            flow.lock.lock();
            try {
                if (wire != null && link.wire == wire) {
                    link.broken(why);
                } else if (!link.isConnected()) {
                    link.failed(isRefused, why);
                }
                flow.tend(link);
                flow.signal();
                long until = System.nanoTime() + pause;
                for (long left = pause; left > 0 && flow.wants(link); left = until - System.nanoTime()) {
                    flow.progress.awaitNanos(left);
                }
                if (!flow.wants(link)) {
                    return;
                }
                pause = Math.min(2 * pause, LONGEST_PAUSE);
            } catch (InterruptedException interrupted) {
                return;
            } finally {
                flow.lock.unlock();
            }
        }
    }

    private Messages.Welcome greet(Wire wire) throws IOException {
        wire.connect(new InetSocketAddress(link.target.host(), link.target.port()), CONNECT_MILLIS);
        wire.setSilence(WELCOME_MILLIS);
        SendSettings settings = flow.settings;
        long transfer;
        flow.lock.lock();
        try {
            transfer = flow.numbering.transfer();
        } finally {
            flow.lock.unlock();
        }
        int level = level(wire);
        // The host's own processes need no pass.
        byte[] pass = link.passes == null || wire.staysHere() ? null : link.passes.ask(flow.incarnation);
        if (level > 0) {
            exchangeKeys(wire);
        }
        // The keys prove the token, so it does not cross the network.
        byte[] token = pass != null ? pass : level > 0 ? new byte[16] : link.target.token();
        try {
            ask(wire, BulkFrame.HELLO, hello(settings, level, flow.session, transfer, token, flow.incarnation).encode(), BulkFrame.WELCOME);
        } catch (Refused refused) {
            if (refused.reason == Refused.PROTECTION && level == 0) {
                demandsProtection = true;
                throw new Stronger();
            }
            throw refused;
        }
        Messages.Welcome welcome = Messages.Welcome.decode(wire.payload());
        int least = Math.min(settings.frame(), LEAST_FRAME);
        int agreed = welcome.options() >> 1 & 3;
        if (welcome.transport() != 0 || agreed < level || (agreed > 0) != (level > 0) || welcome.frame() < least) {
            throw new IOException("its welcome has transport " + welcome.transport() + ", options " + welcome.options() + " and frames of "
                    + welcome.frame() + " bytes, which were not asked for");
        }
        wire.setSilence(0);
        return welcome;
    }

    /** Returns the protection that both ends demand, as far as known. */
    private int level(Wire wire) throws IOException {
        boolean isHere = wire.staysHere();
        int demanded = Math.max(flow.settings.protection().level(isHere), link.protection.level(isHere));
        return demandsProtection ? Math.max(demanded, 1) : demanded;
    }

    private void exchangeKeys(Wire wire) throws IOException {
        try {
            Keys.Offer offer = Keys.offer();
            ask(wire, BulkFrame.KEY_OFFER, offer.payload(), BulkFrame.KEY_REPLY);
            Keys keys = offer.accept(link.target.token(), wire.payload());
            wire.protect(keys.sender(), keys.receiver());
        } catch (GeneralSecurityException failed) {
            throw new IOException(failed.getMessage(), failed);
        }
    }

    /** Sends a frame of the handshake, and waits for its answer of this kind, whose payload is the connection's. */
    private static void ask(Wire wire, int kind, ByteBuffer payload, int wanted) throws IOException {
        wire.write(kind, payload);
        BulkFrame answer = wire.read();
        if (!answer.fits(wire.payload())) {
            throw new IOException("a changed answer came");
        }
        if (answer.kind() == BulkFrame.REFUSE) {
            throw new Refused(Messages.Refuse.decode(wire.payload()));
        }
        if (answer.kind() != wanted) {
            throw new IOException("it answers with a frame of kind " + answer.kind());
        }
    }

    /** Makes the first frame's payload: data on the connection. */
    static Messages.Hello hello(SendSettings settings, int protection, int session, long transfer, byte[] token, byte[] incarnation) {
        long ackEvery = Math.max(1, Math.min(1 << 20, settings.window() / 2));
        return new Messages.Hello(1, 0, (settings.checked() ? 1 : 0) | protection << 1, settings.frame(), session, ackEvery, transfer, token, incarnation,
                settings.domain(), settings.source(), settings.stream(), settings.flow(), "", 0, null);
    }

    private void read(Wire wire) throws IOException {
        while (true) {
            BulkFrame frame = wire.read();
            ByteBuffer payload = wire.payload();
            if (!frame.fits(payload)) {
                throw new IOException("a changed answer came");
            }
            flow.lock.lock();
            try {
                if (link.wire != wire) {
                    throw new IOException("the connection was replaced");
                }
                flow.take(link, frame, payload);
            } finally {
                flow.lock.unlock();
            }
        }
    }

    private void write() {
        List<Framed> batch = new ArrayList<>();
        flow.lock.lock();
        try {
            while (flow.wants(link)) {
                flow.tend(link);
                if (!link.hasUnsent(flow.window)) {
                    flow.work.await(200, TimeUnit.MILLISECONDS);
                    continue;
                }
                Wire wire = link.wire;
                collect(batch);
                link.isWriting = true;
                flow.lock.unlock();
                IOException failed = null;
                try {
                    wire.write(batch);
                } catch (IOException broken) {
                    failed = broken;
                }
                flow.lock.lock();
                wrote(batch, wire, failed);
            }
        } catch (InterruptedException interrupted) {
            // Nobody interrupts this thread but a program that ends.
        } finally {
            flow.lock.unlock();
        }
    }

    private void collect(List<Framed> batch) {
        int bytes = 0;
        while (!link.owed.isEmpty() && batch.size() < FRAMES) {
            Framed framed = link.owed.poll();
            link.owedInFlight.add(framed);
            batch.add(framed);
        }
        if (link.sends() && link.owed.isEmpty()) {
            while (batch.size() < FRAMES && bytes < BYTES && link.next < flow.window.end()) {
                Framed framed = flow.window.get(link.next++);
                batch.add(framed);
                bytes += framed.bytes().remaining();
            }
        }
        if (flow.settings.slow().skips()) {
            copy(batch);
        }
        batch.stream().filter(framed -> framed.region() != null).forEach(framed -> flow.window.arena().use(framed.region()));
    }

    /** Copies what is written, so that a receiver that takes nothing holds no memory of the window when data is left out for it. */
    private void copy(List<Framed> batch) {
        int bytes = batch.stream().mapToInt(framed -> framed.bytes().remaining()).sum();
        if (copied.capacity() < bytes) {
            copied = ByteBuffer.allocateDirect(bytes);
        }
        copied.clear();
        batch.replaceAll(framed -> {
            int from = copied.position();
            copied.put(framed.bytes().duplicate());
            return Framed.of(framed.header(), copied.slice(from, copied.position() - from));
        });
    }

    private void wrote(List<Framed> batch, Wire wire, IOException failed) {
        batch.stream().filter(framed -> framed.region() != null).forEach(framed -> flow.window.arena().unuse(framed.region()));
        boolean saysSomething = batch.stream().anyMatch(framed -> framed.header().kind() != BulkFrame.PING);
        batch.clear();
        link.isWriting = false;
        if (link.wire == wire) {
            if (failed != null) {
                link.broken(String.valueOf(failed.getMessage()));
            } else {
                link.owedInFlight.clear();
                link.lastWrite = System.nanoTime();
                link.progress = saysSomething ? link.lastWrite : link.progress;
                link.caughtUp(flow.window);
            }
        }
        flow.progress.signalAll();
    }
}
