package org.tampu.bulk;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** A sender or a receiver that obeys commands from outside. */
interface Controlled {
    /** Returns its members of the state, with the report of its flows on demand. */
    Map<String, Object> state(boolean withReport);

    /** Carries a command out. It may wait. */
    void obey(ControlCommand command) throws BulkRefusal;

    /** Ends it: further commands are refused. */
    void end();

    /** Returns names in quotation marks. */
    static String quoted(List<String> names) {
        return names.stream().map(name -> "'" + name + "'").collect(Collectors.joining(", "));
    }

    /** Returns the refusal of an unknown flow. */
    static BulkRefusal noFlow(String flow, List<String> flows) {
        return new BulkRefusal("there is no flow '" + flow + "'; name one of " + quoted(flows));
    }
}
