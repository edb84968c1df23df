// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Types between the blocks of large receive offload.
package lro_pkg;
  import ferronic_pkg::*;

  // What a frame asks for, before anything that is held is looked at.
  typedef enum logic [2:0] {
    ClsPass      = 3'd0,  // it goes on alone, and no flow is touched
    ClsQueue     = 3'd1,  // it goes on alone, behind all that is held for its queue
    ClsAddresses = 3'd2,  // behind all between its addresses
    ClsFlow      = 3'd3,  // behind what is held of its flow
    ClsHold      = 3'd4   // it may be merged
  } lro_class_e;

  // What is kept of a unit's first segment until the unit is closed.
  typedef struct packed {
    logic        v6;
    logic [ 1:0] tags;
    logic        ece;
    logic [ 7:0] pay_at;    // bytes of the frame in front of its payload
    logic [15:0] ip_base;   // what the new length is added to for the new sum of an IPv4 header
    logic [15:0] addr_sum;  // one's complement sum of the addresses
  } lro_head_t;

  // A frame's headers, read. Lengths, sequence number and so on are those of a segment only if
  // `cls` is ClsHold.
  typedef struct packed {
    lro_class_e  cls;
    lro_cause_e  cause;     // of what ClsQueue to ClsFlow close
    logic        push;
    logic [13:0] pay;       // bytes of payload
    logic [13:0] total;     // bytes from the IP header on
    logic [31:0] seq;
    logic [15:0] id;
    logic [ 7:0] ttl;
    lro_head_t   head;
  } lro_segment_t;

  // What the relaxed profile keeps of all segments of a unit.
  typedef struct packed {
    logic        on;        // that is the profile; otherwise what follows is as the first has it
    logic        stamped;   // the options are NOP, NOP, time stamps
    logic [ 7:0] ttl;       // the least
    logic [13:0] size;      // largest payload
    logic [15:0] window;    // of the last
    logic [31:0] ack;
    logic [31:0] echo;      // echoed time stamp
  } lro_latest_t;

  // What the writer is to do with a frame.
  typedef enum logic [1:0] {
    LroPass   = 2'd0,  // publish it alone
    LroOpen   = 2'd1,  // begin a unit with it
    LroAppend = 2'd2   // append its payload to a unit
  } lro_kind_e;

  typedef struct packed {
    lro_kind_e    kind;
    logic [15:0]  ptr;      // of the virtio header in the frame RAM
    logic [13:0]  len;      // bytes of the frame
    qid_t         q;
    lro_cause_e   cause;    // why units close before
    logic         alone;    // it would not begin a unit
    logic         last;     // append: it ends the unit
    logic [15:0]  total;    // append: bytes of the unit with it, from the IP header on
    lro_latest_t  latest;   // of the unit with it
    lro_segment_t segment;
  } lro_op_t;

  // Buffers of one unit.
  localparam int unsigned UnitBuffers = 64;

  // A buffer that is to be returned. No length is above 128 KiB - 1, no id above 2,047.
  typedef struct packed {
    logic [10:0] id;
    logic [16:0] len;
  } lro_buffer_t;

  // Of a unit, from its first segment.
  typedef struct packed {
    qid_t        q;
    lro_head_t   head;
  } lro_unit_head_t;

  // Of a unit, after each segment.
  typedef struct packed {
    logic        merged;    // it has more than one
    logic        more;      // another buffer may follow the one at hand
    logic [ 5:0] full;      // buffers before that
    lro_buffer_t buffer;    // the one at hand, and bytes in it
    logic [16:0] left;      // bytes behind them
    logic [63:0] addr;      // of the first of those
    lro_latest_t latest;
  } lro_unit_end_t;

  // What a unit's headers take beside the frames.
  localparam int unsigned ScratchBytes = 32;
endpackage
