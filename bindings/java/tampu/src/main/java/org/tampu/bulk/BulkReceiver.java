package org.tampu.bulk;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.bulk.Announcement;
import org.tampu.internal.bulk.BulkFrame;
import org.tampu.internal.bulk.Keys;
import org.tampu.internal.bulk.Life;
import org.tampu.internal.bulk.Messages;
import org.tampu.internal.bulk.Passes;
import org.tampu.internal.bulk.ReceivedFlow;
import org.tampu.internal.bulk.Wire;
import org.tampu.internal.ring.RunDirectory;

/**
 * The receiving side of a stream. It listens at the loopback by default, for senders of its host. Each connection has a
 * thread, which calls the flow's handler.
 *
 * <pre>{@code
 * try (var receiver = new BulkReceiver("alma", "archive", "correlator", Map.of("spectra", handler))) {
 *     receiver.announce(gateway);
 *     ...
 * }
 * }</pre>
 */
public final class BulkReceiver implements AutoCloseable {
    private static final int SILENCE_MILLIS = 10_000;
    private static final int HELLO_MILLIS = 5_000;
    /** Longest wait of closing for running calls. */
    private static final long CLOSE_NANOS = 2_000_000_000L;
    /** Callers that are served at once. */
    private static final int CONNECTIONS = 64;
    private static final int FRAME = 1 << 20;

    /** A flow with the sender that has it. */
    private static final class Slot {
        private final String name;
        private final ReceivedFlow flow;
        private final ReentrantLock lock = new ReentrantLock();
        /** The connection of its sender, or null. */
        private volatile Wire wire;
        /** Time at which its connection broke, 0 if it did not. */
        private long brokenAt;

        Slot(String name, BulkHandler handler) {
            this.name = name;
            this.flow = new ReceivedFlow(handler);
        }
    }

    private final String domain;
    private final String source;
    private final String stream;
    /** The host for senders. */
    private final String host;
    private final ServerSocketChannel listener;
    private final byte[] token = new byte[16];
    private final Passes passes = new Passes();
    private final byte[] incarnation = Life.create();
    private final Map<String, Slot> slots = new LinkedHashMap<>();
    /** Connections, with the threads that read them. */
    private final Map<Wire, Thread> callers = new HashMap<>();
    private volatile long resumeNanos = 30_000_000_000L;
    private volatile Protection protection = Protection.AUTO;
    private volatile boolean checked;
    private volatile boolean closing;
    private Announcement announcement;

    /** Listens at a free port of the loopback, in the domain of {@code TAMPU_DOMAIN}, else {@code local}. */
    public BulkReceiver(String source, String stream, Map<String, BulkHandler> flows) throws IOException {
        this(RunDirectory.domain(System.getenv()), source, stream, flows);
    }

    /** Listens at a free port of the loopback. */
    public BulkReceiver(String domain, String source, String stream, Map<String, BulkHandler> flows) throws IOException {
        this(domain, source, stream, flows, 0);
    }

    /** Listens at a port of the loopback; 0 takes a free one. */
    public BulkReceiver(String domain, String source, String stream, Map<String, BulkHandler> flows, int port) throws IOException {
        this(domain, source, stream, flows, new InetSocketAddress(InetAddress.getLoopbackAddress(), port), null);
    }

    /**
     * Listens at an address, for senders on other hosts as well. Connections between hosts are encrypted, unless both ends
     * have {@link Protection#NONE}.
     *
     * @param listen the address; port 0 takes a free one
     * @param announce the host by which senders reach it, as a name or an address; null takes that of {@code listen}
     */
    public BulkReceiver(String domain, String source, String stream, Map<String, BulkHandler> flows, InetSocketAddress listen, String announce)
            throws IOException {
        if (listen.isUnresolved()) {
            throw new IllegalArgumentException("unknown host '" + listen.getHostString() + "' to listen at");
        }
        if (announce == null && listen.getAddress().isAnyLocalAddress()) {
            throw new IllegalArgumentException("listening at all addresses needs `announce`: the one by which senders reach this host");
        }
        String host = announce == null ? listen.getAddress().getHostAddress() : announce;
        this.host = host.contains(":") && !host.startsWith("[") ? "[" + host + "]" : host;
        this.domain = domain;
        this.source = source;
        this.stream = stream;
        flows.forEach((name, handler) -> slots.put(folded(name), new Slot(name, handler)));
        new SecureRandom().nextBytes(token);
        listener = ServerSocketChannel.open().bind(listen);
        daemon("tampu-bulk-listen", this::listen);
        daemon("tampu-bulk-resume", this::watch);
    }

    /** Sets the time that a transfer stays open while its sender is away. */
    public BulkReceiver resume(Duration time) {
        resumeNanos = time.toNanos();
        return this;
    }

    /** Sets the least protection of each connection; a sender may demand more. Call it before {@link #announce}. */
    public BulkReceiver protection(Protection least) {
        protection = Objects.requireNonNull(least, "protection");
        return this;
    }

    /** Sets whether it demands checksums of all data. Call it before {@link #announce}. */
    public BulkReceiver checksum(boolean on) {
        checked = on;
        return this;
    }

    /** Returns the least protection that it demands. */
    Protection protection() {
        return protection;
    }

    /** Returns its state as the answer of {@code bulk/state} has it. */
    Map<String, Object> state() {
        List<Map<String, Object>> flows = new ArrayList<>();
        for (Slot slot : slots.values()) {
            Map<String, Object> one = slot.flow.counters();
            one.put("flow", slot.name);
            one.put("connected", slot.wire != null);
            flows.add(one);
        }
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("stream", stream);
        state.put("source", source);
        state.put("address", target().address());
        state.put("flows", flows);
        return state;
    }

    /** Returns the address for senders. */
    public BulkTarget target() {
        int port = listener.socket().getLocalPort();
        return new BulkTarget(host, port, token.clone());
    }

    /** Announces the receiver on the bus, so that senders of the stream find it. */
    public synchronized void announce(Gateway gateway) throws GatewayException {
        List<String> names = slots.values().stream().map(slot -> slot.name).toList();
        announcement = new Announcement(gateway.session(), stream, target().toString(), protection, names, passes);
    }

    private static String folded(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    private static void daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void listen() {
        while (!closing) {
            try {
                SocketChannel channel = listener.accept();
                daemon("tampu-bulk", () -> serve(channel));
            } catch (IOException closed) {
                return;
            }
        }
    }

    private void serve(SocketChannel channel) {
        Slot slot = null;
        try (Wire wire = new Wire(channel)) {
            synchronized (callers) {
                if (callers.size() >= CONNECTIONS || closing) {
                    return;
                }
                callers.put(wire, Thread.currentThread());
            }
            try {
                wire.setSilence(HELLO_MILLIS);
                BulkFrame frame = wire.read();
                if (frame.kind() == BulkFrame.KEY_OFFER && frame.fits(wire.payload())) {
                    // A sender that demands protection begins with its keys.
                    Keys.Reply reply = Keys.reply(token, wire.payload());
                    wire.write(BulkFrame.KEY_REPLY, reply.payload());
                    wire.protect(reply.keys().receiver(), reply.keys().sender());
                    frame = wire.read();
                }
                int session = 0;
                if (frame.kind() == BulkFrame.HELLO && frame.fits(wire.payload())) {
                    Messages.Hello hello = Messages.Hello.decode(wire.payload());
                    session = hello.session();
                    slot = admit(wire, hello, String.valueOf(channel.getRemoteAddress()));
                }
                if (slot != null) {
                    read(wire, slot, session);
                }
            } finally {
                synchronized (callers) {
                    callers.remove(wire);
                    callers.notifyAll();
                }
                if (slot != null) {
                    leave(wire, slot);
                }
            }
        } catch (IOException | GeneralSecurityException | IllegalArgumentException | ReceivedFlow.Changed ended) {
            // The sender connects again and continues where the flow is.
        }
    }

    private void leave(Wire wire, Slot slot) {
        slot.lock.lock();
        try {
            if (slot.wire == wire) {
                slot.wire = null;
                slot.brokenAt = System.nanoTime();
            }
            if (closing) {
                slot.flow.giveUp();
            }
        } finally {
            slot.lock.unlock();
        }
    }

    /** Decides about a caller, and answers it; returns its flow, or null. */
    private Slot admit(Wire wire, Messages.Hello hello, String address) throws IOException {
        Messages.Refuse refusal = null;
        Slot slot = slots.get(folded(hello.flow()));
        // On a protected connection the keys have proved the token.
        boolean knowsToken = wire.isProtected() || MessageDigest.isEqual(hello.token(), token) || passes.knows(hello.token());
        int asked = hello.options() >> 1 & 3;
        int level = Math.max(Math.min(asked, 2), protection.level(wire.staysHere()));
        if (!knowsToken || !hello.domain().equals(domain)) {
            refusal = new Messages.Refuse(1, "");
        } else if (hello.version() == 0) {
            refusal = new Messages.Refuse(6, "this is version 1");
        } else if (!folded(hello.stream()).equals(folded(stream))) {
            refusal = new Messages.Refuse(2, "this is '" + stream + "'");
        } else if (!passes.take(hello.token(), hello.incarnation()) && passes.areNeeded()) {
            refusal = new Messages.Refuse(9, "it shows no pass of this receiver, so nothing proves its host; a sender that follows the bus gets one");
        } else if (slot == null) {
            refusal = new Messages.Refuse(3, "there is " + String.join(", ", slots.values().stream().map(one -> one.name).toList()));
        } else if (level > 0 && !wire.isProtected()) {
            refusal = new Messages.Refuse(8, "");
        }
        if (refusal == null) {
            slot.lock.lock();
            try {
                boolean isSame = slot.flow.isOf(hello.incarnation(), hello.session());
                if (slot.wire != null && isSame) {
                    slot.wire.close();
                } else if (!isSame && (slot.wire != null || slot.flow.machine().isRunning())) {
                    refusal = new Messages.Refuse(4, "by another sender");
                }
                if (refusal == null) {
                    slot.wire = wire;
                    slot.brokenAt = 0;
                    slot.flow.begin(hello.incarnation(), hello.session(), hello.source(), address, hello.ackEvery());
                    int frame = (int) Math.min(Math.max(Integer.toUnsignedLong(hello.frame()), 1), FRAME);
                    wire.setLimit(frame);
                    wire.write(BulkFrame.WELCOME, new Messages.Welcome(1, 0, hello.options() & 1 | (checked ? 1 : 0) | level << 1, frame, slot.flow.machine().expected(),
                            slot.flow.machine().offset(), incarnation, source, "this receiver takes data on the connection", 0).encode());
                    for (ReceivedFlow.Answer answer : slot.flow.again()) {
                        wire.write(answer.header(), answer.payload());
                    }
                    return slot;
                }
            } finally {
                slot.lock.unlock();
            }
        }
        wire.write(BulkFrame.REFUSE, refusal.encode());
        return null;
    }

    private void read(Wire wire, Slot slot, int session) throws IOException, ReceivedFlow.Changed {
        wire.setSilence(SILENCE_MILLIS);
        List<ReceivedFlow.Answer> answers = new ArrayList<>();
        while (true) {
            BulkFrame frame = wire.read();
            if (frame.session() != session) {
                throw new IOException("a frame of another flow came");
            }
            ByteBuffer payload = wire.payload();
            slot.lock.lock();
            try {
                if (slot.wire != wire) {
                    return;
                }
                try {
                    slot.flow.take(frame, payload, answers);
                } finally {
                    for (ReceivedFlow.Answer answer : answers) {
                        wire.write(answer.header(), answer.payload());
                    }
                    answers.clear();
                }
            } finally {
                slot.lock.unlock();
            }
        }
    }

    /** Ends transfers whose sender does not come back. */
    private void watch() {
        while (!closing) {
            for (Slot slot : slots.values()) {
                // A flow in a call is not away for long; a call that does not return delays no other flow.
                if (slot.lock.tryLock()) {
                    try {
                        if (slot.brokenAt != 0 && System.nanoTime() - slot.brokenAt > resumeNanos) {
                            slot.brokenAt = 0;
                            slot.flow.giveUp();
                        }
                    } finally {
                        slot.lock.unlock();
                    }
                }
            }
            try {
                Thread.sleep(50);
            } catch (InterruptedException interrupted) {
                return;
            }
        }
    }

    private void awaitCallers() {
        long until = System.nanoTime() + CLOSE_NANOS;
        try {
            for (long left = CLOSE_NANOS; left > 0; left = until - System.nanoTime()) {
                // A handler may close its own receiver.
                if (callers.values().stream().allMatch(thread -> thread == Thread.currentThread())) {
                    return;
                }
                callers.wait(left / 1_000_000 + 1);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Withdraws the receiver, closes the connections, and ends running transfers. The answer of a running call of a handler
     * goes out first, if the call returns within 2 s.
     */
    @Override
    public void close() throws IOException {
        synchronized (this) {
            if (announcement != null) {
                announcement.close();
            }
        }
        closing = true;
        listener.close();
        synchronized (callers) {
            callers.keySet().forEach(Wire::ignoreRest);
            awaitCallers();
            callers.keySet().forEach(Wire::closeQuietly);
        }
        for (Slot slot : slots.values()) {
            // A flow that is still in a call ends its transfer after it.
            if (slot.lock.tryLock()) {
                try {
                    slot.flow.giveUp();
                } finally {
                    slot.lock.unlock();
                }
            }
        }
    }
}
