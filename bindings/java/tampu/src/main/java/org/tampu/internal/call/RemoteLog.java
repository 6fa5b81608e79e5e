package org.tampu.internal.call;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.Frame;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.json.Json;
import org.tampu.internal.ring.Incarnation;
import org.tampu.log.Level;

/**
 * The way of log records on a host without a node: a bounded queue, and a thread that publishes through a gateway.
 *
 * <p>A call never waits. A record that finds the queue full is counted by level, and a record about the loss follows. So
 * are records of a level that the hub refuses; the others go on. Packets stay in the queue until the hub's readers have
 * them. Records have ids of this process, so a packet that is sent again after a restart of the hub is stored once. A
 * session that the hub has ended is begun anew.
 */
final class RemoteLog {
    /** Bytes that wait in the queue, or for a receipt. */
    private static final long QUEUE = 16 << 20;
    /** Records that are taken at once. */
    private static final int PACKET = 100;
    /** Pauses before what the hub refused is tried again, ms: each twice the one before. */
    private static final long SHORTEST_PAUSE = 1000;
    private static final long LONGEST_PAUSE = 60_000;
    /** Part of the message of records about losses; tests and people search for it. */
    private static final String LOST = " records lost here: ";
    private static final String FULL = "the queue to the gateway stayed full";

    private final Incarnation life;
    private final Session.Connector connector;
    private final Map<String, Object> hello;
    private final long shortestPause;
    private final Object lock = new Object();
    private final Deque<WholeRecord> waiting = new ArrayDeque<>();
    private final Map<Target, Publisher> publishers = new HashMap<>();
    private final Map<String, Long> lostByReason = new HashMap<>();
    private final long[] lostByLevel = new long[12];
    private long lost;
    private long bytes;
    private long number;
    private Session session;

    private record Target(int level, List<String> audiences) {}

    /** Losses that a record reports. */
    private record Losses(Map<String, Long> byReason, long[] byLevel) {}

    /** A record of one level and audience; with losses, it is the report about them. */
    private record Packet(byte[] sample, long size, Losses losses) {}

    RemoteLog(Session.Connector connector, String domain, String source, String token) throws IOException {
        this(connector, domain, source, token, SHORTEST_PAUSE);
    }

    RemoteLog(Session.Connector connector, String domain, String source, String token, long shortestPause) throws IOException {
        this.connector = connector;
        this.shortestPause = shortestPause;
        life = Incarnation.create();
        hello = new HashMap<>(Map.of("versions", List.of(1), "client", "tampu-java 0.1.0", "source", source, "domain", domain));
        if (token != null) {
            hello.put("token", token);
        }
        session = new Session(connector, hello);
        Thread thread = new Thread(this::run, "tampu-log");
        thread.setDaemon(true);
        thread.start();
    }

    /** Returns the incarnation in the ids of the records. */
    Incarnation incarnation() {
        return life;
    }

    private static long size(WholeRecord record) {
        long size = 300 + record.message.length();
        for (var datum : record.data) {
            size += datum.getKey().length() + datum.getValue().length() + 16;
        }
        return size;
    }

    /** Queues a record; returns false if there is no room for it. */
    boolean put(WholeRecord record) {
        synchronized (lock) {
            if (bytes + size(record) > QUEUE) {
                lose(record.level, FULL);
                return false;
            }
            bytes += size(record);
            waiting.add(record);
            if (waiting.size() == 1) {
                lock.notifyAll();
            }
            return true;
        }
    }

    /** Counts a lost record; the lock is held. */
    private void lose(int level, String reason) {
        lost++;
        lostByLevel[level]++;
        lostByReason.merge(reason, 1L, Long::sum);
    }

    /** Returns the number of lost records: those that found no room, and those that the hub refused. */
    long lost() {
        synchronized (lock) {
            return lost;
        }
    }

    /** Waits until the hub's readers have everything queued so far; returns whether they have. */
    boolean flush(long nanos) {
        long until = System.nanoTime() + nanos;
        synchronized (lock) {
            while (bytes > 0) {
                long left = until - System.nanoTime();
                if (left <= 0) {
                    return false;
                }
                try {
                    lock.wait(Math.min(100, left / 1_000_000 + 1));
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                    return false;
                }
            }
            return true;
        }
    }

    private void run() {
        long pause = shortestPause;
        String told = "";
        while (true) {
            try {
                session.awaitWelcome(Long.MAX_VALUE / 2_000_000);
                pause = shortestPause;
                while (true) {
                    pack();
                    for (Publisher publisher : List.copyOf(publishers.values())) {
                        publisher.publish();
                    }
                }
            } catch (InterruptedException | IOException ended) {
                // This thread is nobody's to interrupt, so that the records go on.
                Thread.interrupted();
                String why = "tampu: log records wait, and are tried again: " + ended.getMessage();
                if (!why.equals(told)) {
                    System.err.println(why);
                    told = why;
                }
            }
            rest(pause);
            pause = Math.min(2 * pause, LONGEST_PAUSE);
            if (session.end() != null) {
                session.close();
                publishers.values().forEach(Publisher::beginAnew);
                session = new Session(connector, hello);
            }
        }
    }

    private static void rest(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            // The pause is over a little earlier.
        }
    }

    /** Waits for records, and gives them to the publishers of their levels and audiences. */
    private void pack() throws InterruptedException, GatewayException {
        GatewayException end = session.end();
        if (end != null) {
            throw end;
        }
        synchronized (lock) {
            if (waiting.isEmpty()) {
                lock.wait(100);
            }
            for (int taken = 0; taken < PACKET && !waiting.isEmpty(); taken++) {
                WholeRecord record = waiting.remove();
                publisher(new Target(record.level, record.voice.audiences())).add(record, null);
            }
            Publisher warnings = publisher(new Target(Level.WARNING.number(), List.of()));
            if (!lostByReason.isEmpty() && !warnings.isRefused()) {
                warnings.report();
            }
        }
    }

    private Publisher publisher(Target target) {
        return publishers.computeIfAbsent(target, Publisher::new);
    }

    /** The publisher of one level and audience. The lock guards its state. */
    private final class Publisher implements Session.Handler {
        private final int level;
        private final Map<String, Object> declaration;
        private int id;
        private boolean isOpen;
        /** Sent, and not yet with the hub's readers: their numbers begin at {@code first}. */
        private final Deque<Packet> sent = new ArrayDeque<>();
        private long first;
        /** To be sent. */
        private final Deque<Packet> queued = new ArrayDeque<>();
        /** Counts the declarations. Receipts and numbers belong to one. */
        private int generation;
        /** The hub's refusal, and the time until which it is not asked again. */
        private GatewayException refusal;
        private long refusedUntil;
        private long pause = shortestPause;

        Publisher(Target target) {
            this.level = target.level;
            Level named = Arrays.stream(Level.values()).filter(each -> each.number() == level).findFirst().orElse(Level.ERROR);
            declaration = new HashMap<>(Map.of("topic", "log/" + named.name().toLowerCase(Locale.ROOT), "type", 2, "version", 1,
                    "receipts", "delivered"));
            if (!target.audiences.isEmpty()) {
                declaration.put("partition", target.audiences);
            }
        }

        /** Adds a record to those that are sent, or counts it if the hub has refused them; the lock is held. */
        void add(WholeRecord record, Losses losses) {
            Packet packet = new Packet(record.toBatch(life, 0, number++), size(record), losses);
            if (isRefused()) {
                drop(packet);
            } else {
                queued.add(packet);
            }
        }

        boolean isRefused() {
            return refusal != null && System.nanoTime() - refusedUntil < 0;
        }

        private void drop(Packet packet) {
            bytes -= packet.size;
            if (packet.losses == null) {
                lose(level, "the hub refused them: " + refusal.getMessage());
                return;
            }
            // The next report has them.
            packet.losses.byReason.forEach((reason, count) -> lostByReason.merge(reason, count, Long::sum));
            Arrays.setAll(lostByLevel, each -> lostByLevel[each] + packet.losses.byLevel[each]);
        }

        /** Adds a record about losses; the lock is held. */
        void report() {
            Losses losses = new Losses(new HashMap<>(lostByReason), lostByLevel.clone());
            long count = losses.byReason.values().stream().mapToLong(Long::longValue).sum();
            WholeRecord record = new WholeRecord();
            record.level = level;
            record.time = Incarnation.utc();
            record.message = count + LOST + String.join("; ", losses.byReason.keySet());
            List<Map.Entry<String, String>> data = new ArrayList<>();
            data.add(new SimpleImmutableEntry<>("lost", Long.toString(count)));
            for (Level each : Level.values()) {
                long ofLevel = losses.byLevel[each.number()];
                if (ofLevel > 0) {
                    String name = each.name().charAt(0) + each.name().substring(1).toLowerCase(Locale.ROOT);
                    data.add(new SimpleImmutableEntry<>(name, Long.toString(ofLevel)));
                }
            }
            record.data = data;
            lostByReason.clear();
            Arrays.fill(lostByLevel, 0);
            bytes += size(record);
            add(record, losses);
        }

        /** Sends what waits. What fails stays. */
        void publish() throws GatewayException {
            while (true) {
                Packet packet;
                boolean opens;
                int now;
                synchronized (lock) {
                    packet = queued.peek();
                    if (packet == null || isRefused()) {
                        return;
                    }
                    opens = !isOpen;
                    isOpen = true;
                    now = generation;
                }
                if (opens) {
                    open();
                }
                int length = packet.sample.length;
                byte[] body = ByteBuffer.allocate(4 + (length + 3 & ~3)).order(ByteOrder.LITTLE_ENDIAN).putInt(length)
                        .put(packet.sample).array();
                session.sendIf(new Frame(Frame.PUBLISH, 0, id, 0, body), () -> {
                    synchronized (lock) {
                        boolean isSame = now == generation && isOpen;
                        if (isSame) {
                            sent.add(queued.remove());
                        }
                        return isSame;
                    }
                });
            }
        }

        private void open() throws GatewayException {
            try {
                id = session.open(this, own -> Frame.of(Frame.DECLARE, own, declaration));
            } catch (GatewayException failed) {
                synchronized (lock) {
                    isOpen = false;
                }
                throw failed;
            }
        }

        @Override
        public void take(Frame frame) {
            synchronized (lock) {
                if (frame.kind() == Frame.OPENED) {
                    refusal = null;
                    pause = shortestPause;
                } else if (frame.kind() == Frame.RECEIPT) {
                    long delivered = Json.number(frame.json(), "delivered", -1);
                    while (first < delivered && !sent.isEmpty()) {
                        bytes -= sent.remove().size;
                        first++;
                    }
                } else if (frame.kind() == Frame.ENDED) {
                    Map<String, Object> body = frame.json();
                    refusal = new GatewayException(Json.text(body, "code", "failed"), Json.text(body, "error", "without a reason"));
                    refusedUntil = System.nanoTime() + pause * 1_000_000;
                    pause = Math.min(2 * pause, LONGEST_PAUSE);
                    beginAnew();
                    queued.forEach(this::drop);
                    queued.clear();
                }
                lock.notifyAll();
            }
            if (frame.kind() == Frame.ENDED) {
                session.forget(frame.id());
            }
        }

        /** Packets that were sent go out again, behind another declaration. */
        private void beginAnew() {
            synchronized (lock) {
                isOpen = false;
                generation++;
                first = 0;
                sent.addAll(queued);
                queued.clear();
                queued.addAll(sent);
                sent.clear();
            }
        }

        @Override
        public Frame renew(int own) {
            synchronized (lock) {
                beginAnew();
                isOpen = true;
            }
            return Frame.of(Frame.DECLARE, own, declaration);
        }

        @Override
        public void ended(GatewayException why) {
            // The thread of the queue asks the session.
        }
    }
}
