package org.tampu.internal.bulk;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Control of a {@link SendFlow} from another thread than the one that sends. No call waits. */
public final class FlowControl {
    private final SendFlow flow;

    /** Controls this flow. */
    public FlowControl(SendFlow flow) {
        this.flow = flow;
    }

    /** Returns the name of the flow. */
    public String name() {
        return flow.settings.flow();
    }

    /** Returns the name of its stream. */
    public String stream() {
        return flow.settings.stream();
    }

    /** Returns the name of its source. */
    public String source() {
        return flow.settings.source();
    }

    /** Limits the rate in bytes a second; 0 for no limit. It holds from the next frame on. */
    public void pace(double bytesPerSecond) {
        flow.controlled(control -> {
            control.setRate(bytesPerSecond);
            return null;
        });
    }

    /** Begins or ends a pause. */
    public void setPaused(boolean on) {
        flow.controlled(control -> {
            control.setPaused(on);
            return null;
        });
    }

    /** Ends the calls of the running transfer until it has ended. Returns false without one. */
    public boolean cancel() {
        return flow.controlled(control -> {
            boolean runs = isRunning();
            if (runs) {
                control.cancel();
            }
            return runs;
        });
    }

    /** Sets whether no transfer may begin. */
    public void setHalted(boolean on) {
        flow.controlled(control -> {
            control.setHalted(on);
            return null;
        });
    }

    /** Returns whether a transfer runs. */
    public boolean isRunning() {
        return flow.controlled(control -> flow.numbering.phase() == Numbering.Phase.DATA);
    }

    /** Returns the state of the flow as the answer of {@code bulk/state} has it. */
    public Map<String, Object> state() {
        return flow.controlled(control -> {
            Map<String, Object> state = new LinkedHashMap<>();
            state.put("flow", name());
            state.put("phase", flow.numbering.phase().name().toLowerCase(Locale.ROOT));
            state.put("transfer", flow.numbering.transfer());
            state.put("bytes", flow.numbering.offset());
            state.put("rate", control.measuredRate(System.nanoTime()));
            state.put("throttle", control.rate() > 0 ? control.rate() : null);
            state.put("paused", control.isPaused());
            state.put("window_limit", flow.settings.window());
            List<Map<String, Object>> receivers = new ArrayList<>();
            for (SendLink link : flow.links()) {
                Map<String, Object> one = new LinkedHashMap<>();
                one.put("receiver", Map.of("source", link.source, "address", link.target.address()));
                one.put("status", link.isRefused ? "refused" : link.status.name().toLowerCase(Locale.ROOT));
                one.put("acknowledged", link.ackedBytes);
                one.put("why", link.reason());
                receivers.add(one);
            }
            state.put("receivers", receivers);
            return state;
        });
    }
}
