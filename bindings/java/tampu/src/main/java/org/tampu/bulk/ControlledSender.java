package org.tampu.bulk;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.tampu.internal.bulk.FlowControl;

/** The flows of a stream that this program sends, under control, and the work that a start begins. */
final class ControlledSender implements Controlled {
    /** Longest wait of a stop until the started work has ended. */
    private static final long STOP_NANOS = 3_000_000_000L;
    private static final double SLOWEST = 1e3;
    private static final double FASTEST = 1e12;

    private final Map<BulkSender, FlowControl> flows = new LinkedHashMap<>();
    private final BulkOffer.StartHandler onStart;
    /** The flow of the work that a start began, or null. The monitor guards it and the following fields. */
    private FlowControl running;
    /** Flows on which the program works by itself, one entry for each work. */
    private final List<FlowControl> own = new ArrayList<>();
    private Thread worker;
    private long starts;
    private String failure;
    private boolean ended;

    ControlledSender(List<BulkSender> senders, BulkOffer.StartHandler onStart) {
        if (senders.isEmpty()) {
            throw new IllegalArgumentException("an offer needs at least one flow");
        }
        senders.forEach(sender -> flows.put(sender, sender.control()));
        String stream = flows.values().iterator().next().stream();
        for (FlowControl flow : flows.values()) {
            if (!flow.stream().equals(stream)) {
                throw new IllegalArgumentException("flow '" + flow.name() + "' is of the stream '" + flow.stream() + "', and not of '" + stream + "'");
            }
        }
        this.onStart = onStart;
    }

    private List<String> names() {
        return flows.values().stream().map(FlowControl::name).toList();
    }

    private List<FlowControl> named(String name) throws BulkRefusal {
        if (name == null) {
            return List.copyOf(flows.values());
        }
        for (FlowControl flow : flows.values()) {
            if (flow.name().equalsIgnoreCase(name)) {
                return List.of(flow);
            }
        }
        throw Controlled.noFlow(name, names());
    }

    private boolean worksOn(FlowControl flow) {
        return running == flow || own.contains(flow);
    }

    /** Notes that the program works on a flow until the returned value is closed. */
    synchronized BulkOffer.OwnWork beginWork(BulkSender sender) {
        FlowControl flow = flows.get(sender);
        if (flow == null) {
            throw new IllegalArgumentException("the flow is not offered");
        }
        own.add(flow);
        return new BulkOffer.OwnWork() {
            private boolean isOver;

            @Override
            public void close() {
                synchronized (ControlledSender.this) {
                    if (!isOver) {
                        isOver = true;
                        own.remove(flow);
                        release(flow);
                    }
                }
            }
        };
    }

    private void release(FlowControl flow) {
        if (!worksOn(flow)) {
            flow.setHalted(false);
        }
    }

    @Override
    public void obey(ControlCommand command) throws BulkRefusal {
        switch (command.verb()) {
            case "state" -> { }
            case "start" -> start(command);
            case "pace" -> {
                double rate = command.number("bytes_per_s");
                if (rate != 0 && !(rate >= SLOWEST && rate <= FASTEST)) {
                    throw new BulkRefusal("invalid rate of " + plain(rate) + " bytes/s: use 1000 to 1000000000000, or 0 for no limit");
                }
                named(command.text("flow")).forEach(flow -> flow.pace(rate));
            }
            case "pause" -> named(command.text("flow")).forEach(flow -> flow.setPaused(true));
            case "resume" -> named(command.text("flow")).forEach(flow -> flow.setPaused(false));
            case "stop" -> stop(command.text("flow"));
            default -> throw new BulkRefusal("it is a sender, which obeys start, pace, pause, resume and stop");
        }
    }

    private static String plain(double rate) {
        return rate == Math.rint(rate) && Math.abs(rate) < 1e15 ? String.valueOf((long) rate) : String.valueOf(rate);
    }

    private synchronized void start(ControlCommand command) throws BulkRefusal {
        if (onStart == null) {
            throw new BulkRefusal("its program begins transfers itself; pace, pause, resume and stop are possible");
        }
        List<FlowControl> wanted = named(command.text("flow"));
        if (wanted.size() > 1) {
            throw new BulkRefusal("it has several flows; name one of " + Controlled.quoted(names()));
        }
        if (ended) {
            throw new BulkRefusal("its program is ending");
        }
        if (running != null) {
            throw new BulkRefusal("flow '" + running.name() + "' is sending what an earlier start began; stop it first, or wait for its end");
        }
        FlowControl flow = wanted.get(0);
        BulkSender sender = flows.entrySet().stream().filter(each -> each.getValue() == flow).map(Map.Entry::getKey).findFirst().orElseThrow();
        String parameter = command.text("parameter");
        BulkOrder order = new BulkOrder(sender, parameter == null ? "" : parameter, command.text("file"));
        release(flow);
        running = flow;
        starts++;
        failure = null;
        worker = new Thread(() -> run(flow, order), "tampu-bulk-start");
        worker.setDaemon(true);
        worker.start();
    }

    private void run(FlowControl flow, BulkOrder order) {
        String why = null;
        try {
            onStart.start(order);
        } catch (Exception | Error failed) {
            why = failed.getMessage() == null ? failed.getClass().getSimpleName() : failed.getMessage();
        }
        try {
            if (flow.isRunning()) {
                order.sender().reset();
            }
        } catch (BulkException closed) {
            // Its program has closed it, which ends the transfer as well.
        }
        synchronized (this) {
            running = null;
            release(flow);
            failure = why;
            notifyAll();
        }
    }

    private synchronized void stop(String name) throws BulkRefusal {
        List<FlowControl> wanted = named(name);
        boolean any = false;
        for (FlowControl flow : wanted) {
            boolean works = worksOn(flow);
            if (works) {
                flow.setHalted(true);
            }
            if (flow.cancel() || works) {
                any = true;
                flow.setPaused(false);
            }
        }
        if (!any) {
            throw new BulkRefusal((name == null ? "no flow is sending" : "flow '" + name + "' is not sending") + "; start it first");
        }
        long until = System.nanoTime() + STOP_NANOS;
        try {
            for (long left = STOP_NANOS; running != null && wanted.contains(running) && left > 0; left = until - System.nanoTime()) {
                wait(left / 1_000_000 + 1);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public Map<String, Object> state(boolean withReport) {
        List<Map<String, Object>> states = flows.values().stream().map(FlowControl::state).toList();
        FlowControl first = flows.values().iterator().next();
        Map<String, Object> state = new LinkedHashMap<>();
        synchronized (this) {
            boolean sends = states.stream().anyMatch(each -> "data".equals(each.get("phase")));
            state.put("kind", "sender");
            state.put("stream", first.stream());
            state.put("active", running != null || !own.isEmpty() || sends);
            state.put("starts", starts);
            state.put("failure", failure);
        }
        if (withReport) {
            Map<String, Object> report = new LinkedHashMap<>();
            report.put("stream", first.stream());
            report.put("source", first.source());
            report.put("flows", states);
            state.put("report", Map.of("sender", report));
        }
        return state;
    }

    @Override
    public void end() {
        Thread left;
        synchronized (this) {
            ended = true;
            if (running != null) {
                running.setHalted(true);
            }
            left = worker;
        }
        // Nobody could resume them afterwards.
        flows.values().forEach(flow -> flow.setPaused(false));
        if (left != null && left != Thread.currentThread()) {
            try {
                left.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
