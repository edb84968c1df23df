// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Types of the receive path.
package rx_pkg;
  import ferronic_pkg::*;

  // What follows a write of the receive path, or a frame that needs none.
  typedef struct packed {
    logic        cmd;       // wait for a write to be done
    logic        used;      // then this used entry
    logic        publish;
    logic        frame_end; // and the frame is over
    logic        drop;
    qid_t        q;
    logic [15:0] id;
    logic [16:0] len;       // used length
    logic [13:0] frame_len;
  } rx_token_t;
endpackage
