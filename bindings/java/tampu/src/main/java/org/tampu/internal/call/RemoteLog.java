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
 * <p>A call never waits. A record that finds the queue full is counted by level, and a record about the loss follows.
 * Packets stay in the queue until the hub's readers have them. Records have ids of this process, so a packet that is
 * sent again after a restart of the hub is stored once.
 */
final class RemoteLog {
    /** Bytes that wait in the queue, or for a receipt. */
    private static final long QUEUE = 16 << 20;
    /** Records of a packet. */
    private static final int PACKET = 100;
    /** Part of the message of records about losses; the collector searches for it. */
    private static final String LOST = " records lost here: the queue to the gateway stayed full";

    private final Incarnation life;
    private final Session session;
    private final Object lock = new Object();
    private final Deque<WholeRecord> waiting = new ArrayDeque<>();
    private final Map<Target, Publisher> publishers = new HashMap<>();
    private final long[] lostByLevel = new long[12];
    private long lost;
    private long told;
    private long bytes;
    private long number;
    private boolean dead;

    private record Target(int level, List<String> audiences) {}

    RemoteLog(Session.Connector connector, String domain, String source, String token) throws IOException {
        life = Incarnation.create();
        Map<String, Object> hello = new HashMap<>(Map.of("versions", List.of(1), "client", "tampu-java 0.1.0", "source", source,
                "domain", domain));
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
            if (dead || bytes + size(record) > QUEUE) {
                lost++;
                lostByLevel[record.level]++;
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

    /** Returns the number of records that found no room. */
    long lost() {
        synchronized (lock) {
            return lost;
        }
    }

    /** Waits until the hub's readers have everything queued so far; returns whether they have. */
    boolean flush(long nanos) {
        long until = System.nanoTime() + nanos;
        synchronized (lock) {
            while (bytes > 0 && !dead) {
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
            return !dead;
        }
    }

    private void run() {
        try {
            session.awaitWelcome(Long.MAX_VALUE / 2_000_000);
            while (true) {
                for (var packet : pack().entrySet()) {
                    publisher(packet.getKey()).publish(packet.getValue());
                }
                for (Publisher publisher : List.copyOf(publishers.values())) {
                    publisher.again();
                }
            }
        } catch (InterruptedException | IOException ended) {
            synchronized (lock) {
                dead = true;
                for (WholeRecord record : waiting) {
                    lost++;
                    lostByLevel[record.level]++;
                }
                waiting.clear();
                lock.notifyAll();
            }
            System.err.println("tampu: log records are no longer published: " + ended.getMessage());
        }
    }

    /** Takes records of the queue, by level and audiences; waits for some. */
    private Map<Target, List<WholeRecord>> pack() throws InterruptedException {
        Map<Target, List<WholeRecord>> packets = new HashMap<>();
        synchronized (lock) {
            if (waiting.isEmpty()) {
                lock.wait(100);
            }
            for (int taken = 0; taken < PACKET && !waiting.isEmpty(); taken++) {
                WholeRecord record = waiting.remove();
                packets.computeIfAbsent(new Target(record.level, record.voice.audiences()), each -> new ArrayList<>()).add(record);
            }
            if (lost > told && !dead) {
                packets.computeIfAbsent(new Target(Level.WARNING.number(), List.of()), each -> new ArrayList<>()).add(loss());
            }
        }
        return packets;
    }

    private WholeRecord loss() {
        WholeRecord record = new WholeRecord();
        record.level = Level.WARNING.number();
        record.time = Incarnation.utc();
        record.message = (lost - told) + LOST;
        List<Map.Entry<String, String>> data = new ArrayList<>();
        data.add(new SimpleImmutableEntry<>("lost", Long.toString(lost - told)));
        for (Level level : Level.values()) {
            long count = lostByLevel[level.number()];
            if (count > 0) {
                String name = level.name().charAt(0) + level.name().substring(1).toLowerCase(Locale.ROOT);
                data.add(new SimpleImmutableEntry<>(name, Long.toString(count)));
                lostByLevel[level.number()] = 0;
            }
        }
        record.data = data;
        told = lost;
        bytes += size(record);
        return record;
    }

    private Publisher publisher(Target target) throws GatewayException {
        Publisher found = publishers.get(target);
        if (found == null) {
            found = new Publisher(target);
            publishers.put(target, found);
        }
        return found;
    }

    /** A packet of records of one level and audience. */
    private record Packet(byte[] sample, long size) {}

    /** The publisher of one level and audience. */
    private final class Publisher implements Session.Handler {
        private final Map<String, Object> declaration;
        private final int id;
        /** Sent, and not yet with the hub's readers: their numbers begin at {@code first}. */
        private final Deque<Packet> sent = new ArrayDeque<>();
        private long first;
        /** Packets that a hub before this one had. */
        private final Deque<Packet> again = new ArrayDeque<>();
        private int generation;
        private GatewayException refused;

        Publisher(Target target) throws GatewayException {
            Level level = Arrays.stream(Level.values()).filter(each -> each.number() == target.level).findFirst()
                    .orElse(Level.ERROR);
            declaration = new HashMap<>(Map.of("topic", "log/" + level.name().toLowerCase(Locale.ROOT), "type", 2, "version", 1,
                    "receipts", "delivered"));
            if (!target.audiences.isEmpty()) {
                declaration.put("partition", target.audiences);
            }
            id = session.open(this, each -> Frame.of(Frame.DECLARE, each, declaration));
        }

        void publish(List<WholeRecord> records) throws GatewayException {
            for (WholeRecord record : records) {
                send(new Packet(record.toBatch(life, 0, number++), size(record)));
            }
        }

        private void send(Packet packet) throws GatewayException {
            int length = packet.sample.length;
            byte[] body = ByteBuffer.allocate(4 + (length + 3 & ~3)).order(ByteOrder.LITTLE_ENDIAN).putInt(length).put(packet.sample)
                    .array();
            int now;
            synchronized (lock) {
                if (refused != null) {
                    throw refused;
                }
                now = generation;
            }
            boolean isSent = session.sendIf(new Frame(Frame.PUBLISH, 0, id, 0, body), () -> {
                synchronized (lock) {
                    if (now == generation) {
                        sent.add(packet);
                    }
                    return now == generation;
                }
            });
            if (!isSent) {
                synchronized (lock) {
                    again.add(packet);
                }
            }
        }

        /** Sends what a hub before this one had, and nobody else. */
        void again() throws GatewayException {
            while (true) {
                Packet packet;
                synchronized (lock) {
                    packet = again.poll();
                }
                if (packet == null) {
                    return;
                }
                send(packet);
            }
        }

        @Override
        public void take(Frame frame) {
            if (frame.kind() == Frame.RECEIPT) {
                Map<String, Object> body = frame.json();
                long delivered = Json.number(body, "delivered", -1);
                synchronized (lock) {
                    while (first < delivered && !sent.isEmpty()) {
                        bytes -= sent.remove().size;
                        first++;
                    }
                    lock.notifyAll();
                }
            } else if (frame.kind() == Frame.ENDED) {
                session.forget(frame.id());
                Map<String, Object> body = frame.json();
                ended(new GatewayException(Json.text(body, "code", "failed"), Json.text(body, "error", "the hub refuses log records")));
            }
        }

        @Override
        public Frame renew(int own) {
            synchronized (lock) {
                generation++;
                first = 0;
                sent.addAll(again);
                again.clear();
                again.addAll(sent);
                sent.clear();
            }
            return Frame.of(Frame.DECLARE, own, declaration);
        }

        @Override
        public void ended(GatewayException why) {
            synchronized (lock) {
                refused = why;
                lock.notifyAll();
            }
        }
    }
}
