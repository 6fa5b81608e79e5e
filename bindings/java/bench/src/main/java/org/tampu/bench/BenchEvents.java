package org.tampu.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.tampu.event.Attribute;
import org.tampu.event.DataType;
import org.tampu.event.Event;
import org.tampu.event.EventClient;
import org.tampu.event.EventServer;
import org.tampu.event.Quality;
import org.tampu.event.Value;
import org.tampu.gateway.Gateway;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

/**
 * Measures events in Java, through the gateway or through JeroMQ: a server pushes spectra of int, and a client checks
 * every element.
 *
 * <pre>
 * BenchEvents server tampu|jeromq ELEMENTS SECONDS     pushes probes until a line comes on standard input
 * BenchEvents client tampu|jeromq PORT                 prints "connected", and at the end a line of JSON
 * </pre>
 */
public final class BenchEvents {
    private static final String NAME = "bench/java/event/value";
    private static final int PROBE = -1;
    private static final int LAST = -2;
    /** Readings that a program with many of them pushes together. */
    private static final int TOGETHER = 64;

    private BenchEvents() {}

    public static void main(String[] arguments) throws Exception {
        boolean isOurs = arguments[1].equals("tampu");
        if (arguments[0].equals("server")) {
            int elements = Integer.parseInt(arguments[2]);
            double seconds = Double.parseDouble(arguments[3]);
            if (isOurs) {
                tampuServer(elements, seconds);
            } else {
                jeromqServer(elements, seconds);
            }
        } else if (isOurs) {
            tampuClient();
        } else {
            jeromqClient(Integer.parseInt(arguments[2]));
        }
    }

    /** Sends one or several numbers; each fills a spectrum. */
    private interface Sender {
        void send(int first, int count) throws Exception;
    }

    private static void push(Sender sender, double seconds) throws Exception {
        AtomicBoolean begun = new AtomicBoolean();
        Thread orders = new Thread(() -> {
            try {
                begun.set(System.in.read() >= -1);
            } catch (IOException closed) {
                begun.set(true);
            }
        });
        orders.setDaemon(true);
        orders.start();
        while (!begun.get()) {
            sender.send(PROBE, 1);
            Thread.sleep(10);
        }
        long until = System.nanoTime() + (long) (seconds * 1e9);
        int number = 0;
        while (System.nanoTime() < until) {
            sender.send(number, TOGETHER);
            number += TOGETHER;
        }
        sender.send(LAST, 1);
        System.out.printf("{\"pushed\": %d}%n", number);
    }

    /** Waits until standard input ends, as it does when the client has all. The session then ends in order. */
    private static void awaitEnd() throws IOException {
        while (System.in.read() >= 0) {
            // What is read means nothing.
        }
    }

    private static void tampuServer(int elements, double seconds) throws Exception {
        try (Gateway gateway = Gateway.local("java-server")) {
            Attribute attribute = new EventServer(gateway).declare(NAME, DataType.LONG, "spectrum", Map.of("max_x", elements));
            push((first, count) -> {
                List<Event> readings = new ArrayList<>(count);
                for (int nth = 0; nth < count; nth++) {
                    int[] all = new int[elements];
                    Arrays.fill(all, first + nth);
                    readings.add(Event.reading(Value.spectrum(DataType.LONG, all), Quality.VALID, 0).withKinds("change"));
                }
                attribute.push(readings);
            }, seconds);
            awaitEnd();
        }
    }

    private static void tampuClient() throws Exception {
        try (Gateway gateway = Gateway.local("java-client")) {
            Tally tally = new Tally();
            new EventClient(gateway).subscribe(List.of("bench/java/*"), delivery -> {
                tally.missed += delivery.missedTo() - delivery.missedFrom();
                if (delivery.event() != null && delivery.event().value() != null) {
                    tally.take((int[]) delivery.event().value().elements());
                }
            });
            tally.over.await();
            tally.tell();
        }
    }

    private static void jeromqServer(int elements, double seconds) throws Exception {
        try (ZContext context = new ZContext()) {
            ZMQ.Socket socket = context.createSocket(SocketType.XPUB);
            // As Tampu does, it waits for its client and drops nothing.
            socket.setXpubNoDrop(true);
            System.out.println("port " + socket.bindToRandomPort("tcp://127.0.0.1"));
            push((first, count) -> {
                for (int nth = 0; nth < count; nth++) {
                    int[] all = new int[elements];
                    Arrays.fill(all, first + nth);
                    ByteBuffer bytes = ByteBuffer.allocate(4 * elements).order(ByteOrder.LITTLE_ENDIAN);
                    bytes.asIntBuffer().put(all);
                    socket.send(bytes.array());
                }
            }, seconds);
            awaitEnd();
        }
    }

    private static void jeromqClient(int port) throws Exception {
        try (ZContext context = new ZContext()) {
            ZMQ.Socket socket = context.createSocket(SocketType.SUB);
            socket.connect("tcp://127.0.0.1:" + port);
            socket.subscribe(ZMQ.SUBSCRIPTION_ALL);
            Tally tally = new Tally();
            while (tally.over.getCount() > 0) {
                byte[] bytes = socket.recv();
                int[] all = new int[bytes.length / 4];
                ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(all);
                tally.take(all);
            }
            tally.tell();
        }
    }

    /** Counts what came. One thread uses it at a time. */
    private static final class Tally {
        private final CountDownLatch over = new CountDownLatch(1);
        private boolean isConnected;
        private int next;
        private long received;
        private long wrong;
        private long missed;
        private long first;
        private long last;

        void take(int[] elements) {
            if (!isConnected) {
                isConnected = true;
                System.out.println("connected");
            }
            int number = elements[0];
            if (number < 0) {
                if (number == LAST) {
                    over.countDown();
                }
                return;
            }
            boolean isWhole = number >= next;
            for (int element : elements) {
                isWhole &= element == number;
            }
            if (received == 0) {
                first = System.nanoTime();
            }
            if (received % 32 == 0) {
                last = System.nanoTime();
            }
            wrong += isWhole ? 0 : 1;
            next = number + 1;
            received++;
        }

        void tell() {
            String row = "{\"received\": %d, \"wrong\": %d, \"missed\": %d, \"first_ns\": %d, \"last_ns\": %d}";
            System.out.println(String.format(Locale.ROOT, row, received, wrong, missed, first, last));
        }
    }
}
