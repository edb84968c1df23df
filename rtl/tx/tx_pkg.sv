// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Records that travel with frames inside the transmit path.
package tx_pkg;
  import ferronic_pkg::*;

  // What becomes of a frame.
  typedef enum logic [2:0] {
    TxOk    = 3'd0,
    TxShort = 3'd1, // no whole Ethernet header behind the virtio header
    TxLong  = 3'd2, // more than MaxFrameBytes
    TxRead  = 3'd3, // a read of host memory failed
    TxOther = 3'd4  // broken descriptor chain: its buffer is not returned
  } tx_kind_e;

  // From the reader: all reads of this frame have been issued.
  typedef struct packed {
    logic        reads; // completions are to be waited for, the last one is marked in its cookie
    tx_kind_e    kind;
    qid_t        q;
    logic [15:0] id;
    logic [13:0] len;   // bytes in the frame RAM, with the virtio header
  } tx_record_t;

  // To the output: the frame is in the RAM.
  typedef struct packed {
    tx_kind_e    kind;
    qid_t        q;
    logic [13:0] len;
  } tx_frame_t;

  // Bits of dma_rd_req_t.cookie.
  localparam int unsigned CookieFirst = 0; // first read of a frame
  localparam int unsigned CookieLast = 1;  // last read of a frame
endpackage
